#pragma once
#include <functional>
#include <string>

#include "comm/communicator.hpp"
#include "sim/machine.hpp"

namespace foreshard::calibrate {

/// Runs the workouts on `busy_cores` threads at once, each a training of one rank on one core, and adds what their
/// kernels took to the machine.
void measure_kernels(sim::Machine& machine, int busy_cores, bool quick);

/// Collective over all ranks of an MPI job: measures the kernels of the update again, on rank 0, where ranks share
/// memory with each other: its pages are smaller than a lone rank's, and these kernels feel it.
void measure_update(sim::Machine& machine, int ranks);

/// Trains a lone rank on a team of `threads` while there is `more` to do, at least two steps. Returns what a step took
/// in the mean, the first apart, in seconds.
double train_while(const std::function<bool()>& more, int threads);

/// Runs one workout on a team of all cores: sets the team's efficiency.
void measure_team(sim::Machine& machine);

/// Trains on `ranks` local ranks: sets the times between ops.
void measure_handovers(sim::Machine& machine, int ranks);

/// Trains a little with a trace open, then sets the resident memory that is not the arena's. First of all, before other
/// memory is used.
void measure_process(sim::Machine& machine);

/// The same of ranks of MPI, which share their libraries. Collective over the ranks of one node; rank 0 has the
/// trace, and its numbers count.
void measure_process(sim::Machine& machine, comm::Communicator& world);

}  // namespace foreshard::calibrate
