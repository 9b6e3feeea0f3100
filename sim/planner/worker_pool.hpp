#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "sim/planner/evaluator.hpp"

namespace foreshard::sim::planner {

/// Does work on several threads, each with an evaluator of its own that it keeps.
class WorkerPool {
 public:
  WorkerPool(int threads, const std::function<std::unique_ptr<Evaluator>()>& make_evaluator);

  /// Calls `work(evaluator, i)` for each i below `count`, in any order, `grain` neighbours on one thread. Returns when
  /// all are done; throws what a call threw, and then leaves out the rest.
  void for_each(std::size_t count, std::size_t grain, const std::function<void(Evaluator&, std::size_t)>& work);

 private:
  std::vector<std::unique_ptr<Evaluator>> evaluators_;
};

}  // namespace foreshard::sim::planner
