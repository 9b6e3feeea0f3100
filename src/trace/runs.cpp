#include "trace/runs.hpp"

#include <algorithm>

namespace foreshard::trace {
namespace {

const Event** place_of(std::vector<Run>& runs, const Event& event) {
  if (event.micro_batch < 0 || static_cast<std::size_t>(event.micro_batch) >= runs.size()) return nullptr;
  Run& run = runs[static_cast<std::size_t>(event.micro_batch)];
  const std::uint32_t first = run.segment->first_op;
  return event.op >= first && event.op - first < run.events.size() ? &run.events[event.op - first] : nullptr;
}

}  // namespace

const Event* StepRuns::awaited(std::size_t run, const plan::Wait& wait) const {
  if (wait.on == plan::Wait::On::op) return runs[run].at(wait.index);
  if (run == 0) return nullptr;
  const Run& before = runs[run - 1];
  const auto& ops = before.segment->points[static_cast<std::size_t>(wait.on) - 1];
  return wait.index < ops.size() ? before.of(ops[wait.index]) : nullptr;
}

StepRuns runs_of(const plan::Plan& plan, std::span<const Event> events) {
  StepRuns step;
  for (const plan::Segment* segment : plan.sequence())
    step.runs.push_back({segment, std::vector<const Event*>(segment->op_count, nullptr)});
  for (const Event& event : events) {
    const Event** place = place_of(step.runs, event);
    if (place && !*place)
      *place = &event;
    else
      ++step.misplaced;
  }
  for (const Run& run : step.runs)
    step.missing += static_cast<std::size_t>(std::ranges::count(run.events, static_cast<const Event*>(nullptr)));
  return step;
}

}  // namespace foreshard::trace
