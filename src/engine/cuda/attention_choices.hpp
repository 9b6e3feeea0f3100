#pragma once
#include "engine/cuda/stream.hpp"
#include "engine/kernel_choices.hpp"
#include "kernels/cuda/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine::cuda {

/// "cudnn" for each attention of a plan that cuDNN carries out faster than our own kernels, forward and backward
/// together, measured on this device with made-up operands, for which it allocates memory. Where the two do not agree
/// on those operands, it stays ours, with a warning.
KernelChoices measure_attention(const plan::Plan& plan, const Stream& stream, kernels::cuda::Kernels& kernels);

/// Makes `kernels` run what was chosen; what is not listed is ours. Throws InputError (bad_input) where cuDNN no longer
/// has what was chosen.
void use_attention(const KernelChoices& choices, const plan::Plan& plan, kernels::cuda::Kernels& kernels);

}  // namespace foreshard::engine::cuda
