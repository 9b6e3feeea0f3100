#include "apps/calibrate/samples.hpp"

#include <algorithm>
#include <numeric>

#include "plan/query.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/op_cost.hpp"

namespace foreshard::calibrate {
namespace {

using Key = std::tuple<model::OpKind, bool, DType, std::array<std::int64_t, 6>>;

Key key_of(const plan::Plan& plan, const plan::Op& op) {
  const model::Sizes& s = op.sizes;
  return {op.kind, op.accumulate, sim::type_of(plan, op), {s.rows, s.cols, s.inner, s.batch, s.seq, s.heads}};
}

sim::KernelTable& table_of(std::vector<sim::KernelTable>& tables, const plan::Op& op, DType dtype, int busy_cores,
                           const std::string& source) {
  for (sim::KernelTable& table : tables)
    if (table.kind == op.kind && table.accumulate == op.accumulate && table.busy_cores == busy_cores &&
        table.dtype == dtype)
      return table;
  tables.push_back({op.kind, op.accumulate, busy_cores, {}, source, dtype});
  return tables.back();
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

std::int64_t end_of(const trace::Event& event) { return event.start_ns + event.duration_ns; }

}  // namespace

double typical(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto quartile = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 4);
  std::nth_element(values.begin(), quartile, values.end());
  return *quartile;
}

void Samples::add(const std::vector<trace::Event>& events) {
  for (const trace::Event& event : events) seconds_[event.op].push_back(1e-9 * static_cast<double>(event.duration_ns));
}

void Samples::add_to(std::vector<sim::KernelTable>& tables, int busy_cores, const std::string& source,
                     const std::function<bool(model::OpKind)>& wanted) const {
  std::map<Key, std::pair<plan::OpId, std::vector<double>>> by_size;
  for (std::uint32_t i = 0; i < plan_.ops.size(); ++i) {
    const plan::Op& candidate = plan_.ops[i];
    if (candidate.group != plan::GroupKind::none || seconds_[i].empty() || !wanted(candidate.kind)) continue;
    auto& [op, times] = by_size[key_of(plan_, plan_.ops[i])];
    op = {i};
    times.push_back(typical(seconds_[i]));
  }
  for (const auto& [key, entry] : by_size) {
    const plan::Op& op = plan_.ops[entry.first.value];
    table_of(tables, op, sim::type_of(plan_, op), busy_cores, source)
        .points.push_back({op.sizes, std::max(1e-9, mean(entry.second))});
  }
}

void Samples::add_to(LoneCollectives& seconds) const {
  for (std::size_t i = 0; i < plan_.ops.size(); ++i)
    if (const plan::Op& op = plan_.ops[i]; op.group != plan::GroupKind::none && !seconds_[i].empty())
      seconds[sim::cost::measured_kind(op.kind)][plan::payload_bytes(plan_, op)].push_back(typical(seconds_[i]));
}

std::vector<sim::CollectiveTable> tables_of(const Samples::LoneCollectives& seconds, const std::string& source) {
  std::vector<sim::CollectiveTable> tables;
  for (const auto& [kind, by_bytes] : seconds) {
    sim::CollectiveTable table{kind, 1, {}, source};
    for (const auto& [bytes, times] : by_bytes)
      table.points.push_back({static_cast<double>(bytes), std::max(1e-9, mean(times))});
    tables.push_back(std::move(table));
  }
  return tables;
}

double Samples::compute_seconds() const {
  double sum = 0;
  for (std::size_t i = 0; i < plan_.ops.size(); ++i)
    if (plan_.ops[i].lane == plan::Lane::compute) sum += typical(seconds_[i]);
  return sum;
}

void Handovers::add(const plan::Plan& plan, const std::vector<trace::Event>& events) {
  std::vector<const trace::Event*> of_op(plan.ops.size());
  for (const trace::Event& event : events) of_op[event.op] = &event;
  const trace::Event* before = nullptr;
  for (const trace::Event& event : events) {
    const plan::Op& op = plan.ops[event.op];
    const bool follows = before && plan.ops[before->op].lane == op.lane;
    const std::int64_t lane_free_ns = follows ? end_of(*before) : 0;
    std::int64_t awaited_ns = 0;
    for (const plan::Wait& wait : plan.waits_of(op))
      if (wait.on == plan::Wait::On::op && of_op[wait.index])
        awaited_ns = std::max(awaited_ns, end_of(*of_op[wait.index]));
    const std::int64_t ready_ns = std::max(lane_free_ns, awaited_ns);
    if (ready_ns > 0 && op.lane == plan::Lane::compute)
      (awaited_ns > lane_free_ns ? wake : next).push_back(1e-9 * static_cast<double>(event.start_ns - ready_ns));
    before = &event;
  }
}

}  // namespace foreshard::calibrate
