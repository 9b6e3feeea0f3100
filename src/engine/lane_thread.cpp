#include "engine/lane_thread.hpp"

namespace foreshard::engine {

LaneThread::LaneThread(Run run) : run_(std::move(run)), queue_(capacity), thread_([this] { loop(); }) {}

LaneThread::~LaneThread() {
  push({});  // a task without an op ends the loop
  thread_.join();
}

void LaneThread::push(const Task& task) {
  const std::uint64_t position = pushed_.load(std::memory_order_relaxed);
  pusher_sleeps_.sleep_until([&] { return position - taken_.load() < capacity; });
  queue_[position % capacity] = task;
  pushed_.store(position + 1);
  thread_sleeps_.wake();
}

void LaneThread::loop() {
  for (std::uint64_t position = 0;; ++position) {
    thread_sleeps_.sleep_until([&] { return pushed_.load() > position; });
    const Task task = queue_[position % capacity];
    taken_.store(position + 1);
    pusher_sleeps_.wake();
    if (!task.instance.op) return;
    run_(task, holds_op(position + 1));
  }
}

bool LaneThread::holds_op(std::uint64_t position) const {
  return pushed_.load() > position && queue_[position % capacity].instance.op;
}

}  // namespace foreshard::engine
