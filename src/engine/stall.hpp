#pragma once
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "engine/pulse.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine {

/// A rank as another one has watched it. Times do not count while the watcher itself did not run.
struct Watched {
  Sighting seen;
  double quiet_s = 0;   ///< since its work changed
  double silent_s = 0;  ///< since its watchdog last gave a sign of life
};

/// The plan whose ops the pulse of a step names; of an evaluation for step 0.
using WatchedPlans = std::function<const plan::Plan&(std::int64_t step)>;

/// Positions of the ranks that hold up the others: those whose process has been silent for `silent_s`; if there are
/// none, those that have ended fewer ops than others. All ranks issue the same ops in the same order, and whoever can
/// go on does: so while one rank stands still, no other ends up with fewer ops. Empty if all are equal.
std::vector<std::size_t> late_ranks(std::span<const Watched> ranks, double silent_s);

/// What a rank is doing: its step, and for each lane that has run the op it is in or has finished last.
std::string work_text(const Sighting& rank, const WatchedPlans& plans);

/// Which ranks are late and what each rank does, a line each. `whole_world`: there are no other ranks.
std::string stall_text(std::span<const Watched> ranks, double silent_s, const WatchedPlans& plans, bool whole_world);

}  // namespace foreshard::engine
