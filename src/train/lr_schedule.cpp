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
    case LrSchedule::Decay::warmup_stable_decay:
      return 1 - progress;
    case LrSchedule::Decay::none:
      break;
  }
  return 1;
}

LrSchedule::Decay decay_named(const std::string& name) {
  if (name == "linear") return LrSchedule::Decay::linear;
  if (name == "wsd") return LrSchedule::Decay::warmup_stable_decay;
  return name == "none" || name == "constant" ? LrSchedule::Decay::none : LrSchedule::Decay::cosine;
}

/// Steps at the end in which the rate decays: of all but the warm-up, or fewer.
std::int64_t decay_length(const LrSchedule& s) {
  const std::int64_t whole = std::max<std::int64_t>(1, s.steps - s.warmup_steps);
  if (s.decay != LrSchedule::Decay::warmup_stable_decay) return whole;
  return std::clamp<std::int64_t>(s.decay_steps > 0 ? s.decay_steps : s.steps / 10, 1, whole);
}

}  // namespace

double learning_rate(const LrSchedule& schedule, std::int64_t step) {
  if (step <= schedule.warmup_steps) {
    return schedule.peak * static_cast<double>(step) / static_cast<double>(schedule.warmup_steps);
  }
  const std::int64_t length = decay_length(schedule), begin = std::max(schedule.warmup_steps, schedule.steps - length);
  const double progress = std::clamp(static_cast<double>(step - 1 - begin) / static_cast<double>(length), 0.0, 1.0);
  const double floor = schedule.min_factor;
  return schedule.peak * (floor + (1 - floor) * remaining(schedule.decay, progress));
}

void add_lr_keys(Config& config) {
  config.add("optimizer.lr", 3e-4, "peak learning rate", {.min = 0});
  config.add("lr_scheduler.warmup_steps", 0, "steps of linear warm-up", {.unit = "steps", .min = 0});
  config.add("lr_scheduler.decay", "cosine", "after the warm-up; wsd (warm-up, stable, decay) decays only at the end",
             {.choices = {"cosine", "linear", "constant", "none", "wsd"}});
  config.add("lr_scheduler.decay_steps", 0, "of wsd: steps at the end that decay, linearly; 0 = a tenth of all",
             {.unit = "steps", .min = 0});
  config.add("lr_scheduler.min_lr_factor", 0.1, "learning rate at the end, as a part of the peak",
             {.min = 0, .max = 1});
}

LrSchedule read_lr_schedule(const Config& config, std::int64_t steps) {
  return {config.get<double>("optimizer.lr"),
          steps,
          config.get<std::int64_t>("lr_scheduler.warmup_steps"),
          config.get<double>("lr_scheduler.min_lr_factor"),
          decay_named(config.get<std::string>("lr_scheduler.decay")),
          config.get<std::int64_t>("lr_scheduler.decay_steps")};
}

}  // namespace foreshard::train
