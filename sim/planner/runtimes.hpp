#pragma once
#include <map>
#include <memory>

#include "sim/planner/torch_runtime.hpp"

namespace foreshard::sim::planner {

/// Evaluators of points of several runtimes, and what they share.
class Runtimes {
 public:
  /// Of our own runtime; both must outlive this.
  Runtimes(const plan::Settings& base, const Cluster& cluster) : base_(base), cluster_(cluster), graphs_(base) {}

  /// Of PyTorch's or DeepSpeed's too. Before any evaluator is made.
  void add(Runtime runtime, torch::TorchJob job);

  /// For points of our own runtime and those that were added. This must outlive it.
  std::unique_ptr<Evaluator> make();

 private:
  struct Torch {
    Torch(torch::TorchJob theirs, const Cluster& cluster) : job(std::move(theirs)), facts(job, cluster) {}
    torch::TorchJob job;
    TorchFacts facts;
  };

  const plan::Settings& base_;
  const Cluster& cluster_;
  TrainingGraphs graphs_;
  std::map<Runtime, std::unique_ptr<Torch>> torch_;
};

}  // namespace foreshard::sim::planner
