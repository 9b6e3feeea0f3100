#include "engine/lane_thread.hpp"

namespace foreshard::engine {

LaneThread::LaneThread(Run run) : run_(std::move(run)), queue_(capacity), thread_([this] { loop(); }) {}

LaneThread::~LaneThread() {
  push({});  // a task without an op ends the loop
  thread_.join();
}

void LaneThread::push(const Task& task) {
  const std::uint64_t position = pushed_.load(std::memory_order_relaxed);
  for (std::uint64_t taken = taken_.load(std::memory_order_acquire); position - taken >= capacity;
       taken = taken_.load(std::memory_order_acquire))
    taken_.wait(taken, std::memory_order_acquire);
  queue_[position % capacity] = task;
  pushed_.store(position + 1, std::memory_order_release);
  pushed_.notify_one();
}

void LaneThread::loop() {
  for (std::uint64_t position = 0;; ++position) {
    pushed_.wait(position, std::memory_order_acquire);
    const Task task = queue_[position % capacity];
    taken_.store(position + 1, std::memory_order_release);
    taken_.notify_one();
    if (!task.instance.op) return;
    run_(task);
  }
}

}  // namespace foreshard::engine
