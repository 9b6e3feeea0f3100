#pragma once
#include "engine/cuda/stream.hpp"
#include "engine/kernel_choices.hpp"
#include "kernels/cuda/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine::cuda {

/// The fastest algorithm of cuBLASLt for each product of a plan, measured on this device with made-up operands, for
/// which it allocates memory; where there is none, the product keeps the library's own first choice.
KernelChoices measure_algorithms(const plan::Plan& plan, const Stream& stream, kernels::cuda::Kernels& kernels);

/// Makes `kernels` run what was chosen. Throws InputError (bad_input) where a choice is not one of an algorithm.
void use_algorithms(const KernelChoices& choices, const plan::Plan& plan, kernels::cuda::Kernels& kernels);

}  // namespace foreshard::engine::cuda
