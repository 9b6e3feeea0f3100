#pragma once
#include <cstdint>

namespace foreshard::engine {

/// The first micro-batch of a step whose loss on this rank was infinite or not a number; −1: none. `row` is its first
/// row of which the log-sum-exp was; −1: none.
struct LossFault {
  int micro_batch = -1;
  std::int64_t row = -1;
};

}  // namespace foreshard::engine
