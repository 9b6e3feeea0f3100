#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "base/event_count.hpp"
#include "exec/executor.hpp"

namespace foreshard::engine {

/// How many ops of each lane have ended; lanes wait for each other on it. Only the op that somebody waits for wakes
/// anybody: a thread woken after each op would take the core from the lane that computes, where ranks have one core.
class Progress {
 public:
  /// Who waits: the thread of a lane, by its number, or the one that issues. Each thread is one of them.
  static constexpr std::size_t issuer = plan::lane_count;

  /// One more op of the lane has ended. By the lane's thread alone, and so is `wake`.
  void advance(plan::Lane lane) { of(lane).ended.fetch_add(1); }
  /// Wakes who waits for the lane's last op. Due after `advance`, before the thread blocks elsewhere than in
  /// `wait_for`.
  void wake(plan::Lane lane) {
    Count& count = of(lane);
    const std::uint64_t ended = count.ended.load();
    for (const std::atomic<std::uint64_t>& wanted : count.wanted)
      if (wanted.load() == ended) return count.waiters.wake();
  }
  /// Blocks until `ticket` has ended; before it does, wakes who waits for this lane.
  void wait_for(const exec::Ticket& ticket, std::size_t waiter) {
    Count& count = of(ticket.lane);
    const auto has_ended = [&] { return count.ended.load() >= ticket.sequence; };
    if (has_ended()) return;
    if (waiter != issuer) wake(static_cast<plan::Lane>(waiter));
    count.wanted[waiter].store(ticket.sequence);  // before `ended` is read again, so one of the two sees the other
    count.waiters.sleep_until(has_ended);
  }

 private:
  struct alignas(64) Count {
    std::atomic<std::uint64_t> ended{0};
    std::array<std::atomic<std::uint64_t>, plan::lane_count + 1> wanted{};  ///< by waiter; stale when it has ended
    EventCount waiters;
  };
  Count& of(plan::Lane lane) { return counts_[static_cast<std::size_t>(lane)]; }

  std::array<Count, plan::lane_count> counts_;
};

/// A thread that runs tasks one after the other, in the order of `push`. One thread pushes.
class LaneThread {
 public:
  struct Task {
    exec::Instance instance;
    exec::Ticket ticket;
    std::array<std::uint64_t, plan::lane_count> waits{};  ///< by lane: the sequence number to wait for
  };
  using Run = std::function<void(const Task&, bool more)>;  ///< more: it is called again at once, as another is pushed

  explicit LaneThread(Run run);
  ~LaneThread();                ///< waits for the tasks pushed so far
  void push(const Task& task);  ///< blocks while the queue is full

 private:
  static constexpr std::uint64_t capacity = 1024;
  void loop();
  bool holds_op(std::uint64_t position) const;

  Run run_;
  std::vector<Task> queue_;
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  EventCount thread_sleeps_;
  alignas(64) std::atomic<std::uint64_t> taken_{0};
  EventCount pusher_sleeps_;
  std::thread thread_;
};

}  // namespace foreshard::engine
