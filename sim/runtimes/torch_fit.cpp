#include "sim/runtimes/torch_fit.hpp"

namespace foreshard::sim::torch {
namespace {

using allocator::PhaseMemory;
using allocator::RunPhase;

PhaseMemory phase(RunPhase which, const AllocatorPeaks& peaks) {
  PhaseMemory memory{.phase = which, .allocated = peaks.allocated, .reserved = peaks.reserved, .simulated = true};
  memory.retries = peaks.retries;
  return memory;
}

RunPhase failed_phase(const TorchPrediction& prediction) {
  if (prediction.saves) return RunPhase::save;
  const int step = prediction.failed_step;
  return step == 0 ? RunPhase::init : step == 1 ? RunPhase::first_step : RunPhase::steady;
}

}  // namespace

allocator::FitVerdict fit_of(const TorchPrediction& prediction) {
  const bool ends = !prediction.out_of_memory.empty();
  std::vector<PhaseMemory> phases;
  if (!ends || prediction.failed_step > 0) phases.push_back(phase(RunPhase::init, prediction.init));
  if (!prediction.peaks.empty()) phases.push_back(phase(RunPhase::first_step, prediction.peaks.front()));
  if (prediction.peaks.size() > 1 && (!ends || prediction.saves))
    phases.push_back(phase(RunPhase::steady, prediction.peaks.back()));
  if (prediction.save) phases.push_back(phase(RunPhase::save, *prediction.save));
  if (ends) {
    phases.push_back({.phase = failed_phase(prediction), .simulated = true});
    phases.back().failure.emplace();
  }
  return allocator::judge(phases, prediction.device_bytes, prediction.outside_bytes);
}

}  // namespace foreshard::sim::torch
