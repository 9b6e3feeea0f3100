#pragma once

namespace foreshard::comm {

/// While one exists, its thread moves messages, and sleeps between looks at them. It asks the scheduler for the core
/// soon after it wakes, for a short time each: with Linux's slices of about 3 ms a woken thread may wait until that of
/// a thread that computes ends. Linux heeds it from version 6.12 on. Threads that are
/// started by this one afterwards have such slices, too, lanes among them: hence `yield_to_messages`.
class MovesMessages {
 public:
  MovesMessages() noexcept;
  ~MovesMessages();
  MovesMessages(const MovesMessages&) = delete;
  MovesMessages& operator=(const MovesMessages&) = delete;
};

/// For a thread that computes, between two ops: leaves the core to a thread of this process that moves messages, if one
/// does and would run. Where ranks have one core for both, gathers over 4 Gbit/s take 60 instead of 100 ms beside
/// compute, and a step 6 % less (measured: two nodes, 3.1 M parameters).
void yield_to_messages() noexcept;

}  // namespace foreshard::comm
