#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "trace/recorder.hpp"

namespace foreshard::trace {

/// One run of a segment: its events by position of the op in the segment; null where there is none.
struct Run {
  const plan::Segment* segment = nullptr;
  std::vector<const Event*> events;

  const Event* of(plan::OpId op) const { return op.valid() ? at(op.value) : nullptr; }
  const Event* at(std::uint32_t op) const {
    return op >= segment->first_op && op - segment->first_op < events.size() ? events[op - segment->first_op] : nullptr;
  }
};

/// One step of one rank, by run of a segment as the plan's sequence has them.
struct StepRuns {
  std::vector<Run> runs;
  std::size_t missing = 0;    ///< ops without an event
  std::size_t misplaced = 0;  ///< events of an op a second time, or of a run that the plan does not have

  /// The event that `wait` of an op of run `run` is for; null if it is not there or the wait is met by the step's
  /// begin.
  const Event* awaited(std::size_t run, const plan::Wait& wait) const;
};

/// Sorts `events`, of one step and rank, into runs. They must outlive the result.
StepRuns runs_of(const plan::Plan& plan, std::span<const Event> events);

}  // namespace foreshard::trace
