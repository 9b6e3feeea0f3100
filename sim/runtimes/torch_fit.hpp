#pragma once
#include "sim/allocator/fit_verdict.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::torch {

/// Whether predicted steps fit their device, phase by phase: the model made, the first step, a steady one. Phases that
/// a failure keeps from happening are left out.
allocator::FitVerdict fit_of(const TorchPrediction& prediction);

}  // namespace foreshard::sim::torch
