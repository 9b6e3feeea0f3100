#include "comm/signal.hpp"

#include <unistd.h>

#include <ctime>

#include "base/event_count.hpp"

namespace foreshard::comm {

namespace {

constexpr timespec look_again_after{.tv_sec = 0, .tv_nsec = 10'000'000};  // bounds how late an abort is noticed

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

class Sleeper {
 public:
  explicit Sleeper(std::atomic<std::uint32_t>& sleepers) : sleepers_(sleepers) { sleepers_.fetch_add(1); }
  ~Sleeper() { sleepers_.fetch_sub(1); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

 private:
  std::atomic<std::uint32_t>& sleepers_;
};

}  // namespace

void Signal::advance() {
  count_.fetch_add(1);
  if (sleepers_.load() != 0) futex_wake_all(count_);
}

void Signal::wait(std::uint32_t target, int spins, const AbortFlag& abort, std::string_view call) {
  for (int i = 0; i <= spins; ++i) {
    if (reached(target, std::memory_order_acquire)) return;
    pause();
  }
  const Sleeper counted(sleepers_);
  sleep_until(target, abort, call);
}

void Signal::sleep_until(std::uint32_t target, const AbortFlag& abort, std::string_view call) {
  while (!reached(target, std::memory_order_seq_cst)) {
    const std::uint32_t seen = count_.load();
    if (static_cast<std::int32_t>(seen - target) >= 0) return;
    abort.check(call);
    futex_wait(count_, seen, &look_again_after);
  }
}

int spins_for(int threads) { return threads > sysconf(_SC_NPROCESSORS_ONLN) ? 0 : 200; }

}  // namespace foreshard::comm
