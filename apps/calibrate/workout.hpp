#pragma once
#include <vector>

#include "plan/settings.hpp"
#include "train/token_stream.hpp"

namespace foreshard::calibrate {

/// Small trainings of one rank whose ops span the sizes of real ones: operands are then as warm or cold as they are in
/// training, which no kernel measured by itself repeats.
std::vector<plan::Settings> workouts(bool quick);

/// The smallest workout as a training of `ranks` ranks, fully sharded.
plan::Settings sharded_workout(int ranks);

/// Tokens and targets of one step of one rank, spread over the vocabulary.
train::Batch batch_of(const plan::Settings& settings);

}  // namespace foreshard::calibrate
