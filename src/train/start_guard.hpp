#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace foreshard::train {

/// Watches a part of start-up in which ranks wait for each other and no watchdog sees them yet: a rank that is stopped
/// or never started would keep all others for ever.
class StartGuard {
 public:
  /// Unless destroyed within `patience` (0: for ever), calls `on_late` on a thread of its own with an
  /// InputError(stalled) that says that `what` did not end. It should end the process and may not return. Ranks speak
  /// one after the other, so that the first ends the others before they say the same.
  StartGuard(std::string what, std::chrono::duration<double> patience, std::function<void(std::exception_ptr)> on_late);
  ~StartGuard();

 private:
  void watch();

  std::string what_;
  std::chrono::duration<double> patience_;
  std::function<void(std::exception_ptr)> on_late_;
  std::mutex mutex_;
  std::condition_variable end_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace foreshard::train
