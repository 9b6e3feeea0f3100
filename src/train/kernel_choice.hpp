#pragma once
#include <map>
#include <string>

#include "comm/communicator.hpp"
#include "kernels/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::train {

/// Which of several kernels runs, by what it computes: "matmul bf16 512x768x3072 tb" -> "native" or "widened". Where
/// kernels round differently, ranks and resumed runs with the same choices get the same bits.
using KernelChoices = std::map<std::string, std::string>;

/// Collective: rank 0 measures, all ranks get the same. Empty if the plan leaves nothing to choose. Leaves the routes
/// of `kernels` undefined.
KernelChoices choose_kernels(comm::Communicator& communicator, const plan::Plan& plan, kernels::Backend& kernels);

/// Makes `kernels` run what was chosen; whatever is not listed is widened.
void apply(const KernelChoices& choices, const plan::Plan& plan, kernels::Backend& kernels);

}  // namespace foreshard::train
