#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "sim/runtimes/eager_model.hpp"
#include "sim/runtimes/torch_optimizer.hpp"

namespace foreshard::sim::torch {

enum class Runtime : std::uint8_t { fsdp1, fsdp2, ddp, zero1, zero2, zero3 };

struct TorchRun {
  Runtime runtime = Runtime::fsdp2;
  Model model;
  Batch batch;
  WrapOptions wrap;
  bool recompute = false;
  int micro_batches = 1;
  bool no_sync = false;          ///< gradients stay whole until the last micro-batch
  bool keeps_gradients = false;  ///< they are set to zero, not dropped
  Update update = Update::adamw;
  UpdateLoop loop = UpdateLoop::foreach;
  bool clip = false;  ///< gradients by their norm, which FSDP1 keeps to the next step; they are scaled in place
  EagerTraits traits;
};

/// Live bytes of tensors over one step, `after_forward` of its last micro-batch: no allocator, no workspace, no
/// communicator.
struct StepMemory {
  std::int64_t peak = 0, after_forward = 0, after_step = 0;
  StepPhase peak_in = StepPhase::forward;
};

/// The most that PyTorch's allocator held of each in a step, and how often it had to wait for the device and ask again.
struct AllocatorPeaks {
  std::int64_t allocated = 0, active = 0, reserved = 0, retries = 0;
};

struct RunMemory {
  std::int64_t initial = 0;
  std::vector<StepMemory> steps;
};

/// Steps of a run on rank 0, in the order in which its host issues them: forward and loss, backward, the
/// optimizer, zero_grad. From the second step on all are equal.
RunMemory live_memory(const TorchRun& run, int steps);

/// The same steps with the time that they take on a cluster.
struct TimedRun {
  RunMemory memory;
  std::vector<StepTimes> times;
};
TimedRun timed_run(const TorchRun& run, const Cluster& cluster, const Software& software, int steps);

/// The same step by step, on a GPU that was made for the run and outlives this.
class TorchSteps {
 public:
  /// `place` may be none. It and `gpu` must outlive this.
  TorchSteps(const TorchRun& run, Gpu& gpu, Place* place = nullptr);
  ~TorchSteps();
  std::int64_t live_bytes() const;
  std::pair<StepMemory, StepTimes> step();

 private:
  class Training;
  Gpu& gpu_;
  std::unique_ptr<Training> training_;
};

}  // namespace foreshard::sim::torch
