#include "trace/analysis.hpp"

#include <algorithm>
#include <limits>

namespace foreshard::trace {
namespace {

using plan::Lane;
using plan::OpKind;
using plan::Plan;

struct Interval {
  std::int64_t begin = 0, end = 0;
};

template <class Wanted>
std::vector<Interval> union_of(std::span<const Event> events, const Plan& plan, Wanted wanted) {
  std::vector<Interval> all, merged;
  for (const Event& event : events)
    if (wanted(plan.ops[event.op].lane)) all.push_back({event.start_ns, event.start_ns + event.duration_ns});
  std::ranges::sort(all, {}, &Interval::begin);
  for (const Interval& next : all) {
    if (!merged.empty() && next.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, next.end);
    else
      merged.push_back(next);
  }
  return merged;
}

std::int64_t length_of(std::span<const Interval> intervals) {
  std::int64_t length = 0;
  for (const Interval& interval : intervals) length += interval.end - interval.begin;
  return length;
}

/// Length of what two lists of disjoint intervals in order have in common.
std::int64_t common_length(std::span<const Interval> a, std::span<const Interval> b) {
  std::int64_t length = 0;
  for (std::size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    length += std::max<std::int64_t>(0, std::min(a[i].end, b[k].end) - std::max(a[i].begin, b[k].begin));
    if (a[i].end < b[k].end)
      ++i;
    else
      ++k;
  }
  return length;
}

CollectiveTotal* total_of(Collectives& collectives, OpKind kind) {
  switch (kind) {
    case OpKind::all_gather:
    case OpKind::gather_norm:
      return &collectives.all_gather;
    case OpKind::reduce_scatter:
      return &collectives.reduce_scatter;
    case OpKind::all_reduce:
    case OpKind::sum_norm:
    case OpKind::sum_loss:
      return &collectives.all_reduce;
    default:
      return nullptr;
  }
}

/// Calls `visit(get)` for every number of StepTotals; `get(totals)` refers to it.
template <class Visit>
void visit_numbers(Visit visit) {
  for (std::size_t i = 0; i < op_kind_count; ++i) {
    visit([i](auto& t) -> auto& { return t.kinds[i].count; });
    visit([i](auto& t) -> auto& { return t.kinds[i].time_ns; });
    visit([i](auto& t) -> auto& { return t.kinds[i].bytes; });
    visit([i](auto& t) -> auto& { return t.kinds[i].received_bytes; });
  }
  for (std::size_t i = 0; i < plan::lane_count; ++i) visit([i](auto& t) -> auto& { return t.lane_busy_ns[i]; });
  for (std::size_t i = 0; i < 3; ++i) visit([i](auto& t) -> auto& { return t.phase_ns[i]; });
  visit([](auto& t) -> auto& { return t.exposed_ns; });
  visit([](auto& t) -> auto& { return t.idle_ns; });
  visit([](auto& t) -> auto& { return t.step_ns; });
}

template <class Combine>
StepTotals combined(std::span<const StepTotals> all, Combine combine) {
  StepTotals result;
  visit_numbers([&](auto get) {
    std::vector<double> values;
    for (const StepTotals& totals : all) values.push_back(get(totals));
    get(result) = combine(std::move(values));
  });
  return result;
}

double mean(std::vector<double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}

/// Steps in order, without the warm-up.
template <class Rows>
std::vector<std::int32_t> counted_steps(const std::map<std::int32_t, Rows>& steps, int skip_steps) {
  std::vector<std::int32_t> counted;
  for (const auto& entry : steps) counted.push_back(entry.first);
  if (counted.size() > static_cast<std::size_t>(skip_steps))
    counted.erase(counted.begin(), counted.begin() + skip_steps);
  return counted;
}

}  // namespace

bool is_communication(Lane lane) { return lane == Lane::gather || lane == Lane::reduce || lane == Lane::replicate; }

double median(std::vector<double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::int64_t exposed_communication_ns(std::span<const Event> events, const Plan& plan) {
  const auto communication = union_of(events, plan, is_communication);
  const auto compute = union_of(events, plan, [](Lane lane) { return lane == Lane::compute; });
  return length_of(communication) - common_length(communication, compute);
}

std::map<std::int32_t, std::vector<Event>> by_step(std::span<const Event> events) {
  std::map<std::int32_t, std::vector<Event>> steps;
  for (const Event& event : events) steps[event.step].push_back(event);
  return steps;
}

Collectives collectives_of(const Plan& plan) {
  Collectives collectives;
  for (const plan::Segment& segment : plan.segments) {
    const auto times = static_cast<std::uint64_t>(plan.times(segment));
    for (const plan::Op& op : plan.ops_of(segment))
      if (CollectiveTotal* total = total_of(collectives, op.kind)) {
        total->count += times;
        total->payload_bytes += times * static_cast<std::uint64_t>(plan::payload_bytes(plan, op));
        total->received_bytes += times * static_cast<std::uint64_t>(op.wire_bytes);
      }
  }
  return collectives;
}

StepTotals totals_of(std::span<const Event> events, const Plan& plan, std::int64_t step_ns) {
  StepTotals totals;
  for (const Event& event : events) {
    const plan::Op& op = plan.ops[event.op];
    const auto duration_ns = static_cast<double>(event.duration_ns);
    KindTotals& kind = totals.kinds[static_cast<std::size_t>(op.kind)];
    kind.count += 1;
    kind.time_ns += duration_ns;
    kind.bytes += op.cost.read_bytes + op.cost.written_bytes;
    kind.received_bytes += static_cast<double>(event.received_bytes);
    totals.lane_busy_ns[static_cast<std::size_t>(op.lane)] += duration_ns;
    if (op.lane == Lane::compute) totals.phase_ns[static_cast<std::size_t>(op.phase)] += duration_ns;
  }
  totals.exposed_ns = static_cast<double>(exposed_communication_ns(events, plan));
  totals.step_ns = static_cast<double>(step_ns);
  totals.idle_ns = totals.step_ns - totals.exposed_ns - totals.lane_busy_ns[static_cast<std::size_t>(Lane::compute)];
  return totals;
}

StepTotals typical_step(const Plan& plan, std::span<const std::vector<Event>> events, std::span<const StepRow> steps,
                        int skip_steps) {
  std::map<std::int32_t, std::vector<StepTotals>> by_rank;
  std::vector<std::map<std::int32_t, std::vector<Event>>> events_of(events.size());
  for (std::size_t rank = 0; rank < events.size(); ++rank) events_of[rank] = by_step(events[rank]);
  for (const StepRow& row : steps)
    if (row.rank < events.size() && events_of[row.rank].contains(row.step))
      by_rank[row.step].push_back(totals_of(events_of[row.rank][row.step], plan, row.duration_ns));
  std::vector<StepTotals> means;
  for (const std::int32_t step : counted_steps(by_rank, skip_steps)) means.push_back(combined(by_rank[step], mean));
  return means.empty() ? StepTotals{} : combined(means, median);
}

double typical_step_s(std::span<const StepRow> steps, int skip_steps) {
  std::map<std::int32_t, std::vector<double>> seconds;
  for (const StepRow& row : steps) seconds[row.step].push_back(static_cast<double>(row.duration_ns) * 1e-9);
  std::vector<double> means;
  for (const std::int32_t step : counted_steps(seconds, skip_steps)) means.push_back(mean(seconds[step]));
  return median(std::move(means));
}

}  // namespace foreshard::trace
