#pragma once
#include <cstdint>
#include <string>

#include "comm/communicator.hpp"
#include "train/training_rank.hpp"

namespace foreshard::train {

/// Collective: what is wrong, in the same words on all ranks, if ranks that hold the same shard of the parameters do
/// not hold the same bits of it: which ranks, and the first parameter that differs; empty if all is well. Nothing is
/// sent but a hash per rank, unless they differ. `rank` is between two steps.
std::string replica_fault(comm::Communicator& communicator, TrainingRank& rank);

/// Collective: throws InputError(outside), on one rank, if there is a replica fault after step `step`; 0: before the
/// first. Ends the others as `together` does.
void expect_equal_replicas(comm::Communicator& communicator, TrainingRank& rank, std::int64_t step);

}  // namespace foreshard::train
