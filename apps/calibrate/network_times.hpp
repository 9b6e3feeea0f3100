#pragma once
#include <vector>

#include "comm/communicator.hpp"
#include "sim/machine.hpp"

namespace foreshard::calibrate {

/// World ranks of this rank's node, in order. Collective over all ranks. Throws InputError unless the ranks of each
/// node are side by side and equally many.
std::vector<int> ranks_of_this_node(comm::Communicator& world);

/// Collective over all ranks, which are on several nodes: gathers among them, as a training does, and sets what the
/// network takes on rank 0: the latency of the smallest gather, divided by log2(nodes); the rate at which bytes come
/// into a node in gathers of training's size, one after the other; which part of that rate is left where every rank
/// computes besides; and the time of a core that compute loses then by each byte. Allocates the communicator's arena.
void measure_network(sim::Machine& machine, comm::Communicator& world, bool quick);

}  // namespace foreshard::calibrate
