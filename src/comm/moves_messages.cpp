#include "comm/moves_messages.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace foreshard::comm {

namespace {

constexpr std::uint64_t slice_ns = 100'000;  // the shortest that Linux grants

/// struct sched_attr of the kernel, version 0: glibc has neither it nor the calls.
struct Attributes {
  std::uint32_t size = sizeof(Attributes);
  std::uint32_t policy = SCHED_OTHER;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime_ns = 0, deadline_ns = 0, period_ns = 0;
};

/// Keeps policy and niceness.
bool ask() {
  Attributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return false;
  if (attributes.policy != SCHED_OTHER) return false;
  attributes.runtime_ns = slice_ns;
  return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0;
}

/// Once a thread is enough.
void prefer_short_slices() { [[maybe_unused]] thread_local const bool asked = ask(); }

std::atomic<int> movers{0};  ///< threads of this process that move messages

}  // namespace

MovesMessages::MovesMessages() noexcept {
  prefer_short_slices();
  movers.fetch_add(1, std::memory_order_relaxed);
}

MovesMessages::~MovesMessages() { movers.fetch_sub(1, std::memory_order_relaxed); }

void yield_to_messages() noexcept {
  if (movers.load(std::memory_order_relaxed) > 0) sched_yield();
}

}  // namespace foreshard::comm
