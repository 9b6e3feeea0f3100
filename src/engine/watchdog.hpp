#pragma once
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "engine/pulse.hpp"
#include "engine/stall.hpp"

namespace foreshard::engine {

struct WatchdogOptions {
  std::chrono::duration<double> deadline = std::chrono::minutes(5);
  /// Called at most once, on the watchdog's thread, with an InputError(stalled) that says who is late. Should end all
  /// ranks, even if that hangs; may not return.
  std::function<void(std::exception_ptr)> on_stall;
};

/// A thread that ends the run when no op of any rank that it sees has begun or ended for `deadline`: an op hangs, or a
/// rank is stopped or dead. It sees the pulses of its node, so that a process which can no longer speak is named by its
/// neighbours; of ranks on other nodes it sees nothing.
///
/// Everything between construction and destruction counts, also what lies between steps: reading data, writing a trace.
/// In a long pause (Pulse::LongPause) the deadline is twelve times as long, unless a process is silent. The first rank
/// of a node that is alive speaks; the others follow a second later, if they still run. Time in which the watchdog
/// itself did not run (the whole job was suspended, the machine overloaded) does not count.
class Watchdog {
 public:
  /// The board and the plans outlive the watchdog.
  Watchdog(PulseBoard& board, const WatchedPlans& plans, WatchdogOptions options);
  ~Watchdog();  ///< stops watching

 private:
  using Duration = std::chrono::duration<double>;
  void watch();
  bool sleep();
  void look(Duration elapsed);
  double quiet_s() const;
  double patience_s() const;
  bool silent(const Watched& rank) const { return rank.silent_s >= silent_s_; }
  std::exception_ptr stall() const;

  PulseBoard& board_;
  WatchedPlans plans_;
  WatchdogOptions options_;
  Duration period_;
  double silent_s_;  ///< a process is silent whose watchdog has missed ten periods
  std::vector<Watched> watched_;
  std::size_t own_ = 0;  ///< position of this rank
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace foreshard::engine
