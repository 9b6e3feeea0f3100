#pragma once
#include <list>
#include <map>
#include <memory>
#include <mutex>

#include "sim/planner/bound.hpp"

namespace foreshard::sim::planner {

/// What a point's step will be.
struct Evaluation {
  double step_s = 0;
  std::int64_t memory_bytes = 0;       ///< of the device, all of it
  std::int64_t host_memory_bytes = 0;  ///< of a rank
  std::int64_t retries = 0;            ///< of PyTorch's allocator in a step, each of which waits for the device
};

/// Says what points cost, for one runtime. Of one thread.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  /// By simulating the plan.
  virtual Evaluation evaluate(const Point& point) = 0;

  /// No more than `evaluate` would say, in microseconds.
  virtual Bound bound(const Point& point) = 0;
};

/// Training graphs by what they depend on, for several threads; the latest are kept.
class TrainingGraphs {
 public:
  /// `base` must outlive this.
  explicit TrainingGraphs(const plan::Settings& base) : base_(base) {}

  std::shared_ptr<const model::Graph> of(const Point& point, const plan::Settings& settings);

 private:
  using Key = std::tuple<DType, DType, plan::Recompute::Mode, int, bool, bool, std::int64_t>;
  static constexpr std::size_t most_kept = 48;

  const plan::Settings& base_;
  std::mutex mutex_;
  std::list<std::pair<Key, std::shared_ptr<const model::Graph>>> kept_;  // the latest first
};

/// Our own runtime, `foreshard-cuda`, as `predict_on_gpus` has it, without what only reports need.
class OwnRuntime final : public Evaluator {
 public:
  /// All must outlive this.
  OwnRuntime(const plan::Settings& base, const Cluster& cluster, TrainingGraphs& graphs)
      : base_(base), cluster_(cluster), graphs_(graphs), bounds_(base, cluster) {}

  Evaluation evaluate(const Point& point) override;
  Bound bound(const Point& point) override { return bounds_.of(point); }

 private:
  const plan::Settings& base_;
  const Cluster& cluster_;
  TrainingGraphs& graphs_;
  Bounds bounds_;
};

}  // namespace foreshard::sim::planner
