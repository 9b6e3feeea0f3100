#pragma once
#include <functional>
#include <string>

#include "base/config.hpp"
#include "comm/communicator.hpp"
#include "plan/plan.hpp"

namespace foreshard::train {

/// Collective: throws on every rank, before any data has moved, unless all ranks have the same plan. The message names
/// the ranks that differ from rank 0 and the first op in which one of them does.
void expect_same_plan(comm::Communicator& communicator, const plan::Plan& plan);

/// Collective: the same for the names, shapes and units of all parameters, which say where initial values go. Equal
/// plans may differ in them, where layers are of equal size.
void expect_same_parameters(comm::Communicator& communicator, const model::Graph& graph);

/// Collective: the same, as an InputError(usage), for all keys but those that each rank may have for itself.
void expect_same_config(comm::Communicator& communicator, const Config& config);

/// Collective: runs `action` on every rank. Where it throws, the first such rank throws it on; all others wait for that
/// rank to end the run, so that one message is printed and no rank is left alone.
void together(comm::Communicator& communicator, const std::function<void()>& action);

/// Collective: the text that rank 0 gives, on every rank.
std::string text_of_rank_0(comm::Communicator& communicator, std::string text);

}  // namespace foreshard::train
