#pragma once
#include <atomic>
#include <cstdint>
#include <string_view>

#include "comm/abort_flag.hpp"

namespace foreshard::comm {

/// A counter that one thread advances and others, in this or another process, wait for. Lies in memory that all of them
/// map; zeroed memory is a counter at 0. Counts wrap; a waiter is never more than 2^31 behind.
class Signal {
 public:
  /// What was written before is seen by whoever waited for the new count.
  void advance();

  /// The count, as its only writer knows it.
  std::uint32_t count() const { return count_.load(std::memory_order_relaxed); }

  /// Returns when the count has reached `target`. Looks `spins` times (a pause apart: 10 to 40 ns), then sleeps in
  /// the kernel: a waiting thread leaves its core to the thread that computes. Throws what `abort` throws for `call`.
  void wait(std::uint32_t target, int spins, const AbortFlag& abort, std::string_view call);

 private:
  bool reached(std::uint32_t target, std::memory_order order) const {
    return static_cast<std::int32_t>(count_.load(order) - target) >= 0;
  }
  void sleep_until(std::uint32_t target, const AbortFlag& abort, std::string_view call);

  std::atomic<std::uint32_t> count_{0};
  std::atomic<std::uint32_t> sleepers_{0};
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free, "counters are shared between processes");

/// How often to look before sleeping: for some 5 µs, or not at all when `threads` exceed the processors of this
/// machine. To sleep and be woken takes 10 to 20 µs (measured, 2 virtual cores), during which the waker waits next: an
/// all-reduce of one KiB takes 45 µs without spinning or with 1 µs of it, and 1 µs with 5.
int spins_for(int threads);

}  // namespace foreshard::comm
