#pragma once

namespace foreshard::comm {

/// Asks the scheduler to give this thread the core soon after it wakes, for a short time each: right for one that
/// sleeps, moves some bytes and sleeps again beside a thread that computes. With Linux's slices of about 3 ms a woken
/// thread may wait until the computing one's ends. Linux heeds it from version 6.12 on; elsewhere nothing happens. Once
/// a thread is enough, more costs nothing.
void prefer_short_slices() noexcept;

}  // namespace foreshard::comm
