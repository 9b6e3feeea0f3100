#pragma once
#include <algorithm>
#include <array>

#include "engine/cuda/stream.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {

/// Times what is queued on a stream that is idle.
class Stopwatch {
 public:
  explicit Stopwatch(const Stream& stream) : stream_(stream) {}

  /// The median of several runs, after one that is not counted.
  template <class Run>
  double seconds(Run run) const {
    run();
    std::array<double, 7> times;
    for (double& time : times) time = once(run);
    const auto middle = times.begin() + times.size() / 2;
    std::ranges::nth_element(times, middle);
    return *middle;
  }

 private:
  template <class Run>
  double once(Run run) const {
    stream_.record(begin_);
    run();
    stream_.record(end_);
    kernels::cuda::check(cudaEventSynchronize(end_.get()), "cudaEventSynchronize");
    return elapsed_ns(begin_, end_) * 1e-9;
  }

  const Stream& stream_;
  Event begin_{Event::Kind::time}, end_{Event::Kind::time};
};

}  // namespace foreshard::engine::cuda
