#pragma once
#include "comm/communicator.hpp"
#include "engine/engine.hpp"

namespace foreshard::train {

using engine::KernelChoices;

/// Collective: rank 0 measures, all ranks get the same. Empty if the plan leaves nothing to choose, or if some rank
/// could not use what rank 0 chose.
KernelChoices choose_kernels(comm::Communicator& communicator, const plan::Plan& plan, engine::Engine& engine);

/// Collective: whether every rank can use these choices, of its own checkpoint.
bool usable_on_all(comm::Communicator& communicator, const KernelChoices& choices, const engine::Engine& engine);

}  // namespace foreshard::train
