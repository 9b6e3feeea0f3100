#pragma once
#include <atomic>
#include <cstdint>
#include <ctime>

namespace foreshard {

/// Sleeps in the kernel while `word` is `seen`, until `futex_wake_all(word)`, for at most `at_most`; may return early.
/// The word may lie in memory that processes share.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, const std::timespec* at_most = nullptr);
void futex_wake_all(std::atomic<std::uint32_t>& word);

/// Where threads of this process sleep until something is so. Wakes nobody who sleeps elsewhere, and costs a load where
/// nobody sleeps. (std::atomic::wait does neither for words of 64 bits in libstdc++ 12: all of them that are
/// aligned to a cache line have one list of sleepers in common, which each notification wakes as a whole.)
class EventCount {
 public:
  /// Returns when `is_so()`. Whoever makes it so does it by atomic operations in the order of seq_cst, then calls
  /// `wake`.
  template <class Condition>
  void sleep_until(Condition is_so) {
    while (!is_so()) {
      sleepers_.fetch_add(1);  // before the second look, so that either this sees it or `wake` sees the sleeper
      const std::uint32_t seen = events_.load();
      if (!is_so()) futex_wait(events_, seen);
      sleepers_.fetch_sub(1);
    }
  }
  void wake() {
    if (sleepers_.load() == 0) return;
    events_.fetch_add(1);
    futex_wake_all(events_);
  }

 private:
  std::atomic<std::uint32_t> events_{0}, sleepers_{0};
};

}  // namespace foreshard
