#pragma once
#include <cstdint>

namespace foreshard::model {

/// One micro-batch of `batch` sequences of `seq` tokens.
struct BatchShape {
  std::int64_t batch = 1, seq = 1024;
};

}  // namespace foreshard::model
