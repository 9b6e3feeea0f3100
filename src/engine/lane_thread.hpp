#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "exec/executor.hpp"

namespace foreshard::engine {

/// How many ops of each lane have ended; lanes wait for each other on it.
class Progress {
 public:
  void advance(plan::Lane lane) {
    auto& count = ended_[static_cast<std::size_t>(lane)].value;
    count.fetch_add(1, std::memory_order_release);
    count.notify_all();
  }
  /// Blocks until `ticket` has ended.
  void wait_for(const exec::Ticket& ticket) const {
    const auto& count = ended_[static_cast<std::size_t>(ticket.lane)].value;
    for (std::uint64_t ended = count.load(std::memory_order_acquire); ended < ticket.sequence;
         ended = count.load(std::memory_order_acquire))
      count.wait(ended, std::memory_order_acquire);
  }

 private:
  struct alignas(64) Count {
    std::atomic<std::uint64_t> value{0};
  };
  std::array<Count, plan::lane_count> ended_;
};

/// A thread that runs tasks one after the other, in the order of `push`. One thread pushes.
class LaneThread {
 public:
  struct Task {
    exec::Instance instance;
    exec::Ticket ticket;
    std::array<std::uint64_t, plan::lane_count> waits{};  ///< by lane: the sequence number to wait for
  };
  using Run = std::function<void(const Task&)>;

  explicit LaneThread(Run run);
  ~LaneThread();                ///< waits for the tasks pushed so far
  void push(const Task& task);  ///< blocks while the queue is full

 private:
  static constexpr std::uint64_t capacity = 1024;
  void loop();

  Run run_;
  std::vector<Task> queue_;
  alignas(64) std::atomic<std::uint64_t> pushed_{0};
  alignas(64) std::atomic<std::uint64_t> taken_{0};
  std::thread thread_;
};

}  // namespace foreshard::engine
