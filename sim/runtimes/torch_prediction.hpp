#pragma once
#include <optional>
#include <set>
#include <span>
#include <string>

#include "sim/flop_conventions.hpp"
#include "sim/runtimes/torch_job.hpp"

namespace foreshard::sim::torch {

/// What steps of PyTorch will be on a cluster.
struct TorchPrediction {
  StepTimes first, steady;
  std::vector<AllocatorPeaks> peaks;   ///< of each step
  AllocatorPeaks init;                 ///< while the model is made; what is reserved stays so
  std::optional<AllocatorPeaks> save;  ///< of a checkpoint and the step behind it
  bool saves = false;                  ///< a checkpoint was begun
  std::int64_t reserved_before = 0;    ///< by the allocator, before the first step
  std::int64_t outside_bytes = 0, device_bytes = 0;
  std::string out_of_memory;                    ///< where a step asked for more than there is; then nothing follows
  int failed_step = 0;                          ///< in which, 0: while the model was made
  RunMemory memory;                             ///< of the first step and those behind it
  std::vector<Ran> ran;                         ///< of the steady step, in the order of issue
  std::vector<std::size_t> micro_batch_starts;  ///< in `ran`
  Nanoseconds step_start = 0;
  FlopBasis flops;
  double peak_flops_per_s = 0;  ///< dense, of the type that the blocks compute in
  std::set<std::string> sources;
};

/// Steps until one takes as long as the one before, or needs more memory than there is. Memory lies in PyTorch's
/// allocator, beside context and communicators.
TorchPrediction predict(const TorchJob& job, const Cluster& cluster);

/// What counts of FLOPs are made from, of one rank's step.
FlopBasis flop_basis(const TorchRun& run);

/// The order of issue as plan::order_text gives it: collectives, and F:u, B:u where a unit's compute begins.
std::string order_text(std::span<const Ran> ran, std::span<const std::size_t> micro_batch_starts);

}  // namespace foreshard::sim::torch
