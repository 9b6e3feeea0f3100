#pragma once
#include <atomic>
#include <cstdint>

#include "comm/communicator.hpp"

namespace foreshard::train {

/// From now on SIGUSR1 only raises the flag that is returned, however often it comes (a launcher and a batch system may
/// both send it). Call before MPI starts, so that an early signal does not end the process.
const std::atomic<bool>& catch_stop_signal();

/// Whether to save and stop: true on all ranks after the same step, once any of them was asked. Ranks ask each other
/// after every step, or, where steps are shorter than 0.25 s, about every 0.25 s, by an interval in steps that all of
/// them derive from the slowest rank. One exchange takes 10 to 250 µs (measured, 2 and 4 ranks on 2 virtual cores): at
/// most a thousandth of the run.
class StopAgreement {
 public:
  StopAgreement(comm::Communicator& communicator, const std::atomic<bool>& requested);

  /// Collective, after each step.
  bool after_step();

 private:
  bool agree();

  comm::Communicator& communicator_;
  const std::atomic<bool>& requested_;
  std::int64_t asked_ns_;
  std::int64_t interval_ = 1, steps_ = 0;  ///< steps from one exchange to the next; since the last
};

}  // namespace foreshard::train
