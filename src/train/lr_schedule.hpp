#pragma once
#include <cstdint>

#include "base/config.hpp"

namespace foreshard::train {

/// Learning rate by step: linear warm-up, then a decay to `min_factor` of the peak at the last step. Steps count
/// whether or not their update was skipped.
struct LrSchedule {
  enum class Decay : std::uint8_t { cosine, linear, none, warmup_stable_decay };
  double peak = 3e-4;
  std::int64_t steps = 1, warmup_steps = 0;
  double min_factor = 0.1;
  Decay decay = Decay::cosine;
  std::int64_t decay_steps = 0;  ///< of warmup_stable_decay: at the end; 0 = a tenth of the steps
};

/// Rate of step `step`, counted from 1 (so llm.c's step s is s + 1 here; llmc/schedulers.h):
///   step <= warmup:  peak · step / warmup
///   else             peak · (min + (1 − min) · ½(1 + cos π·p)),  p = (step − 1 − warmup) / (steps − warmup), at
///   most 1.
/// `linear` has 1 − p for the cosine term, `none` has 1. `warmup_stable_decay` stays at the peak until the last
/// decay_steps, D, and is linear there: p = max(0, step − 1 − (steps − D)) / D (Hu et al. 2024, arXiv 2404.06395, whose
/// decay is exponential; Hägele et al. 2024, arXiv 2405.18392, have the linear one).
double learning_rate(const LrSchedule& schedule, std::int64_t step);

/// Keys optimizer.lr and lr_scheduler.warmup_steps, .decay, .decay_steps, .min_lr_factor.
void add_lr_keys(Config& config);
LrSchedule read_lr_schedule(const Config& config, std::int64_t steps);

}  // namespace foreshard::train
