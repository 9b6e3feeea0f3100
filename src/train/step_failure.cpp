#include "train/step_failure.hpp"

#include <fmt/format.h>

namespace foreshard::train {

std::string diverged_text(std::int64_t step, const StepResult& result, const std::string& findings,
                          const TrainSettings& settings) {
  return fmt::format(
      "step {}: the loss is {} and the gradient norm {}: training has diverged\n  {}\n  nothing was updated; lower "
      "optimizer.lr ({}) or train.max_norm ({}), look at the data, or go on without such steps by train.on_nonfinite = "
      "skip",
      step, result.loss, result.grad_norm, findings, settings.schedule.peak, settings.optimizer.max_norm);
}

std::string no_progress_text(std::int64_t step, std::int64_t skipped, const StepResult& result, double loss_scale,
                             const TrainSettings& settings) {
  return fmt::format(
      "step {}: {} steps in a row were skipped, the most that train.max_skips allows: the loss is {}, the gradient "
      "norm "
      "{}, the loss scale now {}\n  nothing was updated since step {}; lower optimizer.lr ({}), take a wider type for "
      "precision.param or precision.reduce, look at the data, or go on from an earlier checkpoint",
      step, skipped, result.loss, result.grad_norm, loss_scale, step - skipped, settings.schedule.peak);
}

}  // namespace foreshard::train
