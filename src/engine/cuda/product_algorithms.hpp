#pragma once
#include <string>

#include "engine/cuda/fused_products.hpp"
#include "engine/cuda/stream.hpp"
#include "engine/kernel_choices.hpp"
#include "kernels/cuda/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine::cuda {

/// The fastest algorithm of cuBLASLt for each product of a plan, measured on this device with made-up operands, for
/// which it allocates memory; where there is none, the product keeps the library's own first choice. A fused product is
/// chosen only where it is faster than its two ops one by one.
KernelChoices measure_algorithms(const plan::Plan& plan, const Stream& stream, kernels::cuda::Kernels& kernels);

/// As choices name a product, and what was chosen for it.
std::string name_of(const Product& product);
std::string text_of(const kernels::cuda::Algorithm& algorithm);

/// Makes `kernels` run what was chosen. Throws InputError (bad_input) where a choice is not one of an algorithm.
void use_algorithms(const KernelChoices& choices, const plan::Plan& plan, kernels::cuda::Kernels& kernels);

}  // namespace foreshard::engine::cuda
