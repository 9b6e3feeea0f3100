#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "trace/tables.hpp"

namespace foreshard::trace {

/// Lanes that move data between ranks: gather, reduce, replicate.
bool is_communication(plan::Lane lane);

/// The middle value, or the mean of the two middle values; NaN of nothing.
double median(std::vector<double> values);

/// Time in which a communication lane is busy while the compute lane is idle, over all `events`, which are of one rank.
std::int64_t exposed_communication_ns(std::span<const Event> events, const plan::Plan& plan);

/// Events of one rank by step.
std::map<std::int32_t, std::vector<Event>> by_step(std::span<const Event> events);

/// What one rank's collectives move in one step of the plan. Sums of the norm and of the loss are all-reduces.
Collectives collectives_of(const plan::Plan& plan);

struct KindTotals {
  double count = 0, time_ns = 0;
  double bytes = 0;           ///< read and written in memory
  double received_bytes = 0;  ///< from other ranks
};

/// Where one step of one rank went. forward + backward + update + exposed + idle = step.
struct StepTotals {
  std::array<KindTotals, op_kind_count> kinds{};
  std::array<double, plan::lane_count> lane_busy_ns{};
  std::array<double, 3> phase_ns{};  ///< compute lane busy, by plan::Phase
  double exposed_ns = 0;             ///< communication that compute does not cover
  double idle_ns = 0;                ///< neither
  double step_ns = 0;
};

/// Totals of the events of one step and one rank, of a step that took `step_ns`.
StepTotals totals_of(std::span<const Event> events, const plan::Plan& plan, std::int64_t step_ns);

/// Every number on its own: the mean over ranks, then the median over steps. The first `skip_steps` steps do not count
/// unless there are no others. Steps come from `steps`; `events` (by rank) may lack some.
StepTotals typical_step(const plan::Plan& plan, std::span<const std::vector<Event>> events,
                        std::span<const StepRow> steps, int skip_steps);

/// Seconds of a typical step: the mean over ranks, then the median over all but the first `skip_steps` steps.
double typical_step_s(std::span<const StepRow> steps, int skip_steps);

}  // namespace foreshard::trace
