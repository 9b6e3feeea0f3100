#pragma once
#include <chrono>
#include <cstdint>

namespace foreshard {

/// Nanoseconds of CLOCK_MONOTONIC: one clock for all processes of a node.
inline std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Nanoseconds since 1970 (UTC), by the system's clock: to be read by people, and by other nodes.
inline std::int64_t unix_now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace foreshard
