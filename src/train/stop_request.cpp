#include "train/stop_request.hpp"

#include <algorithm>
#include <csignal>

#include "base/clock.hpp"

namespace foreshard::train {
namespace {

constexpr std::int64_t between_exchanges_ns = 250'000'000, most_steps = 1000;

std::atomic<bool> signalled{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler writes it");

void note_signal(int) { signalled.store(true); }

}  // namespace

const std::atomic<bool>& catch_stop_signal() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  return signalled;
}

StopAgreement::StopAgreement(comm::Communicator& communicator, const std::atomic<bool>& requested)
    : communicator_(communicator), requested_(requested), asked_ns_(now_ns()) {}

bool StopAgreement::after_step() { return ++steps_ >= interval_ && agree(); }

/// One exchange: the lowest bit says whether this rank was asked, the others how long its steps took.
bool StopAgreement::agree() {
  const std::int64_t step_ns = (now_ns() - asked_ns_) / steps_;
  const auto told = communicator_.all_gather_u64(static_cast<std::uint64_t>(step_ns) << 1 | requested_.load());
  const auto slowest_ns = static_cast<std::int64_t>(std::ranges::max(told) >> 1);
  interval_ = std::clamp(between_exchanges_ns / std::max<std::int64_t>(1, slowest_ns), std::int64_t{1}, most_steps);
  steps_ = 0;
  asked_ns_ = now_ns();
  return std::ranges::any_of(told, [](std::uint64_t word) { return (word & 1) != 0; });
}

}  // namespace foreshard::train
