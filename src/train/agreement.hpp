#pragma once
#include <functional>

#include "comm/communicator.hpp"
#include "plan/plan.hpp"

namespace foreshard::train {

/// Collective: throws on every rank, before any data has moved, unless all ranks have the same plan. The message names
/// the ranks that differ from rank 0 and the first op in which one of them does.
void expect_same_plan(comm::Communicator& communicator, const plan::Plan& plan);

/// Collective: runs `action` on every rank. Where it throws InputError, the first such rank throws it on; all others
/// wait for that rank to end the run, so that one message is printed and no rank is left alone.
void together(comm::Communicator& communicator, const std::function<void()>& action);

}  // namespace foreshard::train
