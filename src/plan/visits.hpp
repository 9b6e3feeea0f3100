#pragma once
#include <vector>

#include "model/graph.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {

/// A run of operators of one unit and phase. Visits of the other units are numbered in compute order; the root is
/// apart.
struct Visit {
  model::UnitId unit;
  Phase phase = Phase::forward;
  std::size_t first = 0, count = 0;  ///< operators of the graph
  int number = -1;                   ///< −1 for the root
  bool ends_backward = false;        ///< the unit's last operator of the micro-batch is here: its gradient is complete
};

/// The operators of a graph as visits, in order.
std::vector<Visit> visits_of(const model::Graph& graph);

/// When a visit's gather is issued.
struct GatherRule {
  int after = -1;  ///< the visit whose end it waits for; negative: counted from the end of the micro-batch before
  bool after_reduce = false;  ///< wait for that visit's reduction too (prefetch none)
};

/// By visit number. Depths, limits and prefetch modes become nothing but these waits:
/// visit v's gather waits for the end of v − 1 − depth, of v − limit, and of its own unit's visit before. Gathers keep
/// the order of their visits.
std::vector<GatherRule> gather_rules(const std::vector<Visit>& visits, const ScheduleOptions& options);

}  // namespace foreshard::plan
