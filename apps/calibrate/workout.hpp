#pragma once
#include <vector>

#include "plan/settings.hpp"
#include "train/token_stream.hpp"

namespace foreshard::calibrate {

/// Small trainings of one rank whose ops span the sizes of real ones: operands are then as warm or cold as they are in
/// training, which no kernel measured by itself repeats.
std::vector<plan::Settings> workouts(bool quick);

/// The same for a GPU, whose queue their kernels fill: in f32 and in bf16, each step some hundred milliseconds.
std::vector<plan::Settings> gpu_workouts(bool quick);

/// A small workout as a training of `ranks` ranks, fully sharded.
plan::Settings sharded_workout(int ranks);

/// Workouts of all sizes, fully sharded over `ranks` ranks.
std::vector<plan::Settings> sharded_workouts(int ranks);

/// Tokens and targets of one step of one rank. As in text, few are frequent: half of them are of an eighth of the
/// vocabulary.
train::Batch batch_of(const plan::Settings& settings);

}  // namespace foreshard::calibrate
