#include "engine/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/units.hpp"

namespace foreshard::engine {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::nanoseconds turn_of_the_others = 1s;

double seconds(std::chrono::nanoseconds duration) { return std::chrono::duration<double>(duration).count(); }

/// A process whose watchdog has missed ten periods.
double silent_s(std::chrono::nanoseconds period) { return 10 * seconds(period); }

void follow(Watched& rank, const Sighting& now, double elapsed_s) {
  rank.quiet_s = now.same_work(rank.seen) ? rank.quiet_s + elapsed_s : 0;
  rank.silent_s = now.beats == rank.seen.beats ? rank.silent_s + elapsed_s : 0;
  rank.seen = now;
}

}  // namespace

Watchdog::Watchdog(PulseBoard& board, const WatchedPlans& plans, WatchdogOptions options)
    : board_(board),
      plans_(plans),
      options_(std::move(options)),
      period_(std::clamp<Duration>(options_.deadline / 20, 10ms, 1s)) {
  const int rank = Sighting(board_.own()).rank;
  for (const Sighting& seen : board_.look()) {
    if (seen.rank == rank) own_ = watched_.size();
    watched_.push_back({.seen = seen});
  }
  thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_.notify_one();
  thread_.join();
}

/// False: it is time to stop.
bool Watchdog::sleep() {
  std::unique_lock lock(mutex_);
  return !stop_.wait_for(lock, period_, [this] { return stopping_; });
}

void Watchdog::watch() {
  auto before = std::chrono::steady_clock::now();
  while (sleep()) {
    board_.own().beat();
    const auto now = std::chrono::steady_clock::now();
    look(std::min<Duration>(now - before, 2 * period_));
    before = now;
    if (own().quiet_s >= seconds(patience())) return options_.on_stall(stall());
  }
}

void Watchdog::look(Duration elapsed) {
  const std::vector<Sighting> sightings = board_.look();
  for (std::size_t i = 0; i < sightings.size(); ++i) follow(watched_[i], sightings[i], seconds(elapsed));
}

Watchdog::Duration Watchdog::patience() const {
  const auto alive = [this](const Watched& rank) { return rank.silent_s < silent_s(period_); };
  const bool first = std::ranges::find_if(watched_, alive) - watched_.begin() == static_cast<std::ptrdiff_t>(own_);
  return options_.deadline + (first ? 0s : turn_of_the_others);
}

std::exception_ptr Watchdog::stall() const {
  return std::make_exception_ptr(InputError(
      ExitCode::stalled, fmt::format("nothing has moved for {} (engine.watchdog_s = {:g})\n{}",
                                     duration_text(own().quiet_s), seconds(options_.deadline),
                                     stall_text(watched_, silent_s(period_), plans_, board_.sees_whole_world()))));
}

}  // namespace foreshard::engine
