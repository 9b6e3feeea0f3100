#pragma once
#include <set>
#include <span>
#include <string>

#include "sim/flop_conventions.hpp"
#include "sim/runtimes/torch_job.hpp"

namespace foreshard::sim::torch {

/// What steps of PyTorch will be on a cluster.
struct TorchPrediction {
  StepTimes first, steady;
  RunMemory memory;                             ///< of the first step and those behind it
  std::vector<Ran> ran;                         ///< of the steady step, in the order of issue
  std::vector<std::size_t> micro_batch_starts;  ///< in `ran`
  Nanoseconds step_start = 0;
  FlopBasis flops;
  double peak_flops_per_s = 0;  ///< dense, of the type that the blocks compute in
  std::set<std::string> sources;
};

/// Steps until one takes as long as the one before.
TorchPrediction predict(const TorchJob& job, const Cluster& cluster);

/// What counts of FLOPs are made from, of one rank's step.
FlopBasis flop_basis(const TorchRun& run);

/// The order of issue as plan::order_text gives it: collectives, and F:u, B:u where a unit's compute begins.
std::string order_text(std::span<const Ran> ran, std::span<const std::size_t> micro_batch_starts);

}  // namespace foreshard::sim::torch
