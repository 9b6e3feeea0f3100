#pragma once
#include <map>
#include <mutex>
#include <tuple>

#include "sim/planner/evaluator.hpp"
#include "sim/runtimes/torch_job.hpp"

namespace foreshard::sim::planner {

/// The job of a point: the user's, with what the search decides.
torch::TorchJob job_of(const torch::TorchJob& base, const Point& point);

/// The point that a job is, with the settings that it was read from.
Point point_of(const plan::Settings& settings, const torch::TorchJob& job);

/// What bounds on PyTorch's steps are made of, by what it depends on; for several threads.
class TorchFacts {
 public:
  /// Both must outlive this.
  TorchFacts(const torch::TorchJob& base, const Cluster& cluster) : base_(base), cluster_(cluster) {}

  /// Peak of the live bytes of a steady step, without what is prefetched.
  std::int64_t live_bytes(const Point& point);

  /// Kernels of the compute stream, alone on one rank.
  struct Compute {
    double micro_batch_s = 0;  ///< of the model alone, forward and backward
    double update_s = 0;       ///< of all parameters
  };
  Compute compute(const Point& point);

  /// What a communicator is busy with, each collective alone. Without units (DDP, ZeRO) one collective stands for all
  /// buckets, and one gather for a step's.
  struct Communication {
    double root_gather_s = 0, gathers_s = 0;        ///< of the blocks, once each
    double reductions_s = 0, all_reductions_s = 0;  ///< of all units, once each
  };
  Communication communication(const Point& point);

 private:
  using StepKey = std::tuple<std::int64_t, bool, DType, DType>;
  using LiveKey = std::tuple<StepKey, int, int, bool, int>;
  using MeshKey = std::tuple<int, int, DType, DType>;

  template <class Key, class Value, class Make>
  Value kept(std::map<Key, Value>& all, const Key& key, Make make);
  static StepKey step_key(const Point& point);
  Communication of_units(const Point& point, torch::GpuKernels& kernels) const;
  Communication of_buckets(const Point& point, torch::GpuKernels& kernels) const;

  const torch::TorchJob& base_;
  const Cluster& cluster_;
  std::mutex mutex_;
  std::map<LiveKey, std::int64_t> live_;
  std::map<StepKey, Compute> compute_;
  std::map<MeshKey, Communication> communication_;
};

/// One of PyTorch's runtimes or DeepSpeed's, as `torch::predict` has it. Memory is what its allocator reserved at most,
/// with what lies outside; of a plan that the device has no room for, what it is known to need at least. Of many
/// micro-batches three are simulated, and the second stands for all between the first and the last.
class TorchRuntime final : public Evaluator {
 public:
  /// All must outlive this.
  TorchRuntime(const torch::TorchJob& base, const Cluster& cluster, TorchFacts& facts)
      : base_(base), cluster_(cluster), facts_(facts) {}

  Evaluation evaluate(const Point& point) override;
  Bound bound(const Point& point) override;

 private:
  double slowest_rank_factor(int gpus);

  const torch::TorchJob& base_;
  const Cluster& cluster_;
  TorchFacts& facts_;
  std::map<int, double> slowest_;
};

}  // namespace foreshard::sim::planner
