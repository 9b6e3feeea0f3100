#pragma once
#include "base/config.hpp"
#include "sim/cluster.hpp"

namespace foreshard::sim::planner {

/// `foreshard-plan search`: finds the best plans for a model on a cluster and prints them. Returns the exit code;
/// throws InputError: usage for what cannot be read or is no space at all, infeasible if nothing fits, with the plan
/// that lacks least and the changes that would make it fit.
int search_command(int argc, const char* const* argv);

/// Throws InputError(usage) if a run has more ranks than the cluster has GPUs, where their number is known.
void expect_room(const Cluster& cluster, int gpus);

}  // namespace foreshard::sim::planner
