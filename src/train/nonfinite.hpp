#pragma once
#include <string>

#include "train/training_rank.hpp"

namespace foreshard::train {

/// Collective, after a step whose verdict was not finite and before anything else runs: every rank looks through its
/// losses and its gradient shards for what is infinite or not a number. On rank 0 the findings in words: which rank's
/// loss, in which micro-batch, sequence, position and token; and of the affected parameters the one nearest to the
/// loss, where backward met it first, with the element of the parameter, its value and the rank that holds it.
/// Elsewhere empty. `step` is the step, `batch` its batch.
std::string explain_nonfinite(comm::Communicator& communicator, TrainingRank& rank, std::int64_t step,
                              const Batch& batch);

}  // namespace foreshard::train
