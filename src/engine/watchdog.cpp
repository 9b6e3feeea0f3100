#include "engine/watchdog.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/units.hpp"

namespace foreshard::engine {
namespace {

using namespace std::chrono_literals;

constexpr double turn_of_the_others_s = 1;
constexpr double long_pause_factor = 12;

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
      period_(std::clamp<Duration>(options_.deadline / 20, 10ms, 1s)),
      silent_s_(10 * period_.count()) {
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
    if (quiet_s() >= patience_s()) return options_.on_stall(stall());
  }
}

void Watchdog::look(Duration elapsed) {
  const std::vector<Sighting> sightings = board_.look();
  for (std::size_t i = 0; i < sightings.size(); ++i) follow(watched_[i], sightings[i], elapsed.count());
}

/// Since any rank moved: one that is merely slow holds the others up, but ends.
double Watchdog::quiet_s() const { return std::ranges::min_element(watched_, {}, &Watched::quiet_s)->quiet_s; }

double Watchdog::patience_s() const {
  const auto first_alive = std::ranges::find_if(watched_, [this](const Watched& rank) { return !silent(rank); });
  const bool speaks = first_alive - watched_.begin() == static_cast<std::ptrdiff_t>(own_);
  const bool all_alive = std::ranges::none_of(watched_, [this](const Watched& rank) { return silent(rank); });
  const bool pausing = std::ranges::any_of(watched_, [](const Watched& rank) { return rank.seen.pausing; });
  const double factor = pausing && all_alive ? long_pause_factor : 1;
  return factor * options_.deadline.count() + (speaks ? 0 : turn_of_the_others_s);
}

std::exception_ptr Watchdog::stall() const {
  return std::make_exception_ptr(InputError(
      ExitCode::stalled,
      fmt::format("nothing has moved for {} (engine.watchdog_s = {:g})\n{}", duration_text(quiet_s()),
                  options_.deadline.count(), stall_text(watched_, silent_s_, plans_, board_.sees_whole_world()))));
}

}  // namespace foreshard::engine
