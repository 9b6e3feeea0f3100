#include "sim/planner/worker_pool.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace foreshard::sim::planner {

WorkerPool::WorkerPool(int threads, const std::function<std::unique_ptr<Evaluator>()>& make_evaluator) {
  for (int i = 0; i < threads; ++i) evaluators_.push_back(make_evaluator());
}

void WorkerPool::for_each(std::size_t count, std::size_t grain,
                          const std::function<void(Evaluator&, std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failure;
  std::mutex failed;
  const auto run = [&](Evaluator& evaluator) {
    try {
      for (std::size_t first = next.fetch_add(grain); first < count; first = next.fetch_add(grain))
        for (std::size_t i = first; i < std::min(count, first + grain); ++i) work(evaluator, i);
    } catch (...) {
      next = count;
      const std::lock_guard lock(failed);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < evaluators_.size() && i * grain < count; ++i)
      others.emplace_back([&, i] { run(*evaluators_[i]); });
    run(*evaluators_.front());
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace foreshard::sim::planner
