#include "trace/check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "trace/analysis.hpp"
#include "trace/memory.hpp"
#include "trace/names.hpp"
#include "trace/runs.hpp"

namespace foreshard::trace {
namespace {

using plan::Plan;

std::int64_t end_of(const Event& event) { return event.start_ns + event.duration_ns; }

/// Counts one thing looked at; `text()` says what is wrong with it if it is the first.
template <class Text>
void look(Finding& finding, bool right, Text text) {
  ++finding.looked_at;
  if (right) return;
  if (finding.violations++ == 0) finding.first_violation = text();
}

Finding check_index(const Trace& trace) {
  Finding finding{"index", "the index covers every event once, each batch of one rank"};
  std::uint64_t next = 0;
  for (const Batch& batch : trace.batches) {
    bool right = batch.first_row == next;
    for (std::uint64_t row = batch.first_row; row < batch.first_row + batch.row_count; ++row)
      right = right && trace.rows[row].rank == batch.rank;
    look(finding, right, [&] { return fmt::format("batch at row {} of rank {}", batch.first_row, batch.rank); });
    next = batch.first_row + batch.row_count;
  }
  look(finding, next == trace.rows.size(),
       [&] { return fmt::format("the index ends at row {} of {}", next, trace.rows.size()); });
  return finding;
}

Finding check_ops(const Trace& trace) {
  Finding finding{"ops", "lane and kind of every event are those of its op, durations are not negative"};
  for (std::size_t i = 0; i < trace.rows.size(); ++i) {
    const EventRow& row = trace.rows[i];
    const plan::Op& op = trace.plan.ops[row.event.op];
    look(finding, row.lane == op.lane && row.kind == op.kind && row.event.duration_ns >= 0, [&] {
      return fmt::format("row {}: {} {} of {} ns, but the plan has {}", i, text_of(row.kind), text_of(row.lane),
                         row.event.duration_ns, op_text(trace.plan, row.event.op));
    });
  }
  return finding;
}

void check_lane(Finding& finding, const Trace& trace, std::size_t rank, std::vector<const Event*>& events) {
  std::ranges::stable_sort(events, {}, &Event::start_ns);
  for (std::size_t i = 1; i < events.size(); ++i) {
    const Event &before = *events[i - 1], &after = *events[i];
    look(finding, after.start_ns >= end_of(before), [&] {
      return fmt::format("rank {} step {}: {} starts {} ns before {} ends", rank, after.step,
                         op_text(trace.plan, after.op), end_of(before) - after.start_ns,
                         op_text(trace.plan, before.op));
    });
  }
}

Finding check_lanes(const Trace& trace) {
  Finding finding{"lanes", "the ops of a lane never overlap"};
  for (std::size_t rank = 0; rank < trace.events.size(); ++rank) {
    std::array<std::vector<const Event*>, plan::lane_count> lanes;
    for (const Event& event : trace.events[rank])
      lanes[static_cast<std::size_t>(trace.plan.ops[event.op].lane)].push_back(&event);
    for (auto& lane : lanes) check_lane(finding, trace, rank, lane);
  }
  return finding;
}

/// Calls `visit(rank, step, events)` for every step of every rank.
template <class Visit>
void visit_steps(const Trace& trace, Visit visit) {
  for (std::size_t rank = 0; rank < trace.events.size(); ++rank)
    for (const auto& [step, events] : by_step(trace.events[rank])) visit(rank, step, events);
}

void check_run_order(Finding& finding, const Plan& plan, const Run& run, std::size_t rank) {
  std::array<const Event*, plan::lane_count> last{};
  for (const Event* event : run.events) {
    if (!event) continue;
    const Event*& before = last[static_cast<std::size_t>(plan.ops[event->op].lane)];
    look(finding, !before || event->start_ns >= before->start_ns, [&] {
      return fmt::format("rank {} step {}: {} starts before {}", rank, event->step, op_text(plan, event->op),
                         op_text(plan, before->op));
    });
    before = event;
  }
}

Finding check_order(const Trace& trace) {
  Finding finding{"order", "every lane starts its ops in the plan's order"};
  visit_steps(trace, [&](std::size_t rank, std::int32_t, const std::vector<Event>& events) {
    for (const Run& run : runs_of(trace.plan, events).runs) check_run_order(finding, trace.plan, run, rank);
  });
  return finding;
}

void check_op_waits(Finding& finding, const Plan& plan, const StepRuns& step, std::size_t run, const Event& event,
                    std::size_t rank) {
  for (const plan::Wait& wait : plan.waits_of(plan.ops[event.op])) {
    const Event* awaited = step.awaited(run, wait);
    if (!awaited) continue;
    look(finding, event.start_ns >= end_of(*awaited), [&] {
      return fmt::format("rank {} step {}: {} starts {} ns before {}, which it waits for, ends", rank, event.step,
                         op_text(plan, event.op), end_of(*awaited) - event.start_ns, op_text(plan, awaited->op));
    });
  }
}

Finding check_waits(const Trace& trace) {
  Finding finding{"waits", "every op starts after the ends of what it waits for"};
  visit_steps(trace, [&](std::size_t rank, std::int32_t, const std::vector<Event>& events) {
    const StepRuns step = runs_of(trace.plan, events);
    for (std::size_t run = 0; run < step.runs.size(); ++run)
      for (const Event* event : step.runs[run].events)
        if (event) check_op_waits(finding, trace.plan, step, run, *event, rank);
  });
  return finding;
}

std::int32_t last_step(const Trace& trace) {
  std::int32_t last = std::numeric_limits<std::int32_t>::min();
  for (const EventRow& row : trace.rows) last = std::max(last, row.event.step);
  return last;
}

Finding check_counts(const Trace& trace) {
  Finding finding{"counts", "every recorded step has each op of the plan once"};
  const std::int32_t last = last_step(trace);
  visit_steps(trace, [&](std::size_t rank, std::int32_t step, const std::vector<Event>& events) {
    if (!trace.complete && step == last) return;
    const StepRuns runs = runs_of(trace.plan, events);
    look(finding, runs.missing == 0 && runs.misplaced == 0, [&] {
      return fmt::format("rank {} step {}: {} ops missing, {} events too many", rank, step, runs.missing,
                         runs.misplaced);
    });
  });
  return finding;
}

Finding check_memory(const Trace& trace) {
  Finding finding{"memory", "no more bytes are live than the arena has"};
  for (const MemoryRow& row : trace.memory) {
    const std::int64_t live = MemoryPoint{row.time_ns, row.bytes}.total();
    look(finding, live <= trace.plan.arena_bytes && row.arena_touched_bytes >= 0, [&] {
      return fmt::format("rank {} step {}: {} bytes live in an arena of {}", row.rank, row.step, live,
                         trace.plan.arena_bytes);
    });
  }
  return finding;
}

}  // namespace

std::string op_text(const Plan& plan, std::uint32_t op) {
  const plan::Op& facts = plan.ops[op];
  return fmt::format("op {} {} {} ({})", op, text_of(facts.kind), unit_name(plan, facts.unit), text_of(facts.lane));
}

std::vector<Finding> check(const Trace& trace) {
  return {check_index(trace), check_ops(trace),    check_lanes(trace), check_order(trace),
          check_waits(trace), check_counts(trace), check_memory(trace)};
}

}  // namespace foreshard::trace
