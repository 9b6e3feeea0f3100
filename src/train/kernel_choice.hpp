#pragma once
#include "comm/communicator.hpp"
#include "engine/engine.hpp"

namespace foreshard::train {

using engine::KernelChoices;

/// Collective: rank 0 measures, all ranks get the same. Empty if the plan leaves nothing to choose.
KernelChoices choose_kernels(comm::Communicator& communicator, const plan::Plan& plan, engine::Engine& engine);

}  // namespace foreshard::train
