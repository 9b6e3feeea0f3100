#pragma once
#include <span>

#include "comm/communicator.hpp"
#include "sim/machine.hpp"

namespace foreshard::calibrate {

/// Collective over all ranks of `communicator`: times each collective over sizes among this rank's `members`, while the
/// others do the same among theirs, and adds the tables to `machine` on rank 0. Allocates the communicator's arena.
void measure_collectives(sim::Machine& machine, comm::Communicator& communicator, std::span<const int> members,
                         bool quick);

/// Among all ranks.
void measure_collectives(sim::Machine& machine, comm::Communicator& communicator, bool quick);

}  // namespace foreshard::calibrate
