#include "train/lr_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace foreshard::train {

namespace {

/// Share of the way from the floor to the peak at `progress` in [0, 1] of the decay.
double remaining(LrSchedule::Decay decay, double progress) {
  switch (decay) {
    case LrSchedule::Decay::cosine:
      return 0.5 * (1 + std::cos(std::numbers::pi * progress));
    case LrSchedule::Decay::linear:
      return 1 - progress;
    case LrSchedule::Decay::none:
      break;
  }
  return 1;
}

LrSchedule::Decay decay_named(const std::string& name) {
  if (name == "linear") return LrSchedule::Decay::linear;
  return name == "none" ? LrSchedule::Decay::none : LrSchedule::Decay::cosine;
}

}  // namespace

double learning_rate(const LrSchedule& schedule, std::int64_t step) {
  if (step <= schedule.warmup_steps) {
    return schedule.peak * static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  }
  const auto length = static_cast<double>(std::max<std::int64_t>(1, schedule.steps - schedule.warmup_steps));
  const double progress = std::min(1.0, static_cast<double>(step - 1 - schedule.warmup_steps) / length);
  const double floor = schedule.min_factor;
  return schedule.peak * (floor + (1 - floor) * remaining(schedule.decay, progress));
}

void add_lr_keys(Config& config) {
  config.add("optimizer.lr", 3e-4, "peak learning rate", {.min = 0});
  config.add("lr_scheduler.warmup_steps", 0, "steps of linear warm-up", {.unit = "steps", .min = 0});
  config.add("lr_scheduler.decay", "cosine", "decay after the warm-up", {.choices = {"cosine", "linear", "none"}});
  config.add("lr_scheduler.min_lr_factor", 0.1, "learning rate at the end, as a part of the peak",
             {.min = 0, .max = 1});
}

LrSchedule read_lr_schedule(const Config& config, std::int64_t steps) {
  return {config.get<double>("optimizer.lr"), steps, config.get<std::int64_t>("lr_scheduler.warmup_steps"),
          config.get<double>("lr_scheduler.min_lr_factor"), decay_named(config.get<std::string>("lr_scheduler.decay"))};
}

}  // namespace foreshard::train
