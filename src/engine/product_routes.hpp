#pragma once
#include "engine/kernel_choices.hpp"
#include "kernels/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine {

/// The faster route of each product of bf16 matrices, and of each attention over bf16 heads, in a plan, measured on
/// this rank. Empty if there is none. Leaves the routes of `kernels` undefined.
KernelChoices measure_routes(const plan::Plan& plan, kernels::Backend& kernels);

/// Makes `kernels` run what was chosen; whatever is not listed is widened.
void use_routes(const KernelChoices& choices, const plan::Plan& plan, kernels::Backend& kernels);

}  // namespace foreshard::engine
