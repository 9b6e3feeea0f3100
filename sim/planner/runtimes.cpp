#include "sim/planner/runtimes.hpp"

namespace foreshard::sim::planner {
namespace {

/// Asks the one of a point's runtime.
class AnyRuntime final : public Evaluator {
 public:
  explicit AnyRuntime(std::map<Runtime, std::unique_ptr<Evaluator>> all) : all_(std::move(all)) {}

  Evaluation evaluate(const Point& point) override { return all_.at(point.runtime)->evaluate(point); }
  Bound bound(const Point& point) override { return all_.at(point.runtime)->bound(point); }

 private:
  std::map<Runtime, std::unique_ptr<Evaluator>> all_;
};

}  // namespace

void Runtimes::add(Runtime runtime, torch::TorchJob job) {
  torch_.emplace(runtime, std::make_unique<Torch>(std::move(job), cluster_));
}

std::unique_ptr<Evaluator> Runtimes::make() {
  std::map<Runtime, std::unique_ptr<Evaluator>> all;
  all.emplace(Runtime::own, std::make_unique<OwnRuntime>(base_, cluster_, graphs_));
  for (const auto& [runtime, theirs] : torch_)
    all.emplace(runtime, std::make_unique<TorchRuntime>(theirs->job, cluster_, theirs->facts));
  return std::make_unique<AnyRuntime>(std::move(all));
}

}  // namespace foreshard::sim::planner
