#include "base/event_count.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace foreshard {

// The shared, not the private operations: waiters may be other processes.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen, const std::timespec* at_most) {
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, at_most, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace foreshard
