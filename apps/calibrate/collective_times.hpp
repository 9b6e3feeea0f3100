#pragma once
#include "comm/communicator.hpp"
#include "sim/machine.hpp"

namespace foreshard::calibrate {

/// Collective over all ranks of `communicator`: times each collective among them over sizes, and adds the tables to
/// `machine` on rank 0. Allocates the communicator's arena.
void measure_collectives(sim::Machine& machine, comm::Communicator& communicator, bool quick);

}  // namespace foreshard::calibrate
