#pragma once
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

namespace rehearsal {

/// A point in a stream's work: reached once.
class Ticket {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void reach() {
    const std::lock_guard lock(mutex_);
    reached_ = true;
    time_ = std::chrono::steady_clock::now();
    changed_.notify_all();
  }
  void wait() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reached_; });
  }
  bool reached() const {
    const std::lock_guard lock(mutex_);
    return reached_;
  }
  Time time() const {
    const std::lock_guard lock(mutex_);
    return time_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool reached_ = false;
  Time time_;
};
using TicketPtr = std::shared_ptr<Ticket>;

}  // namespace rehearsal
