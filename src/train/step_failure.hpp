#pragma once
#include <cstdint>
#include <string>

#include "train/train_settings.hpp"

namespace foreshard::train {

/// Why a run ends after `step`, whose loss or gradient was not finite, and what its user can do. `findings` says whose
/// it was.
std::string diverged_text(std::int64_t step, const StepResult& result, const std::string& findings,
                          const TrainSettings& settings);

/// The same after `skipped` steps in a row of which none updated anything: as DeepSpeed ends a run whose loss scale
/// cannot become smaller, but whatever they were skipped for. `loss_scale` is that of the next step.
std::string no_progress_text(std::int64_t step, std::int64_t skipped, const StepResult& result, double loss_scale,
                             const TrainSettings& settings);

}  // namespace foreshard::train
