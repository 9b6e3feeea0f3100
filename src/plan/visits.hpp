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
  bool opens_unit = false;           ///< the unit's first operator of the micro-batch is here
  bool closes_unit = false;          ///< the unit's last operator of the micro-batch is here
  std::vector<model::UnitId> begins,
      completes;  ///< units whose gradient is written first, or last, by an operator here
};

/// The operators of a graph as visits, in order.
std::vector<Visit> visits_of(const model::Graph& graph);

/// Whether a visit needs a gather, and when it is issued.
struct GatherRule {
  bool needed = false;
  int after = -1;  ///< the visit whose end it waits for; negative: counted from the end of the micro-batch before
  bool after_reduce = false;  ///< wait for that visit's reduction too (prefetch none)
};

/// By visit number, of a step's first micro-batch or of a later one. Depths, limits and prefetch modes become nothing
/// but these waits: visit v's gather waits for the end of v − 1 − depth, of its own unit's visit before, and of the
/// latest visit without which v and those behind it are within the limits; kept units do not count. Gathers keep the
/// order of their visits. `unit_bytes` of a gathered unit, by unit; 0: it is never gathered.
std::vector<GatherRule> gather_rules(const std::vector<Visit>& visits, const std::vector<std::int64_t>& unit_bytes,
                                     const ScheduleOptions& options, bool first);

}  // namespace foreshard::plan
