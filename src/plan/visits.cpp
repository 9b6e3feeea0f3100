#include "plan/visits.hpp"

#include <algorithm>
#include <climits>
#include <map>
#include <span>
#include <utility>

namespace foreshard::plan {

namespace {

/// Units that own the parameters whose gradients the operators of a visit write, each once, in order.
std::vector<UnitId> units_written(const model::Graph& graph, const Visit& visit) {
  std::vector<UnitId> units;
  for (const model::Operator& op : std::span(graph.operators).subspan(visit.first, visit.count))
    for (const model::TensorId id : op.outputs) {
      if (!id.valid() || graph[id].role != model::Role::parameter_grad) continue;
      const UnitId unit = graph.parameters[graph[id].parameter.value].unit;
      if (std::ranges::find(units, unit) == units.end()) units.push_back(unit);
    }
  return units;
}

void add_gradients(const model::Graph& graph, std::vector<Visit>& visits) {
  std::map<UnitId, Visit*> last;
  for (Visit& visit : visits)
    for (const UnitId unit : units_written(graph, visit)) {
      Visit*& latest = last[unit];
      if (!latest) visit.begins.push_back(unit);
      latest = &visit;
    }
  for (const auto& [unit, visit] : last) visit->completes.push_back(unit);
}

}  // namespace

std::vector<Visit> visits_of(const model::Graph& graph) {
  std::vector<Visit> visits;
  std::vector<std::size_t> last(graph.units.size(), SIZE_MAX);
  int numbered = 0;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const model::Operator& op = graph.operators[i];
    std::size_t& latest = last[op.unit.value];
    const bool root = op.unit == model::root_unit;
    if (visits.empty() || visits.back().unit != op.unit || visits.back().phase != op.phase)
      visits.push_back({.unit = op.unit,
                        .phase = op.phase,
                        .first = i,
                        .number = root ? -1 : numbered++,
                        .opens_unit = latest == SIZE_MAX});
    ++visits.back().count;
    latest = visits.size() - 1;
  }
  for (const std::size_t visit : last)
    if (visit != SIZE_MAX) visits[visit].closes_unit = true;
  add_gradients(graph, visits);
  return visits;
}

namespace {

/// The rules of one micro-batch, visit by visit.
class Rules {
 public:
  Rules(const std::vector<Visit>& visits, const std::vector<std::int64_t>& unit_bytes, const ScheduleOptions& options,
        bool first)
      : unit_bytes_(unit_bytes), options_(options), first_(first) {
    for (const Visit& visit : visits)
      if (visit.number >= 0) visits_.push_back(&visit);
    for (const Visit* visit : visits_) previous_[visit->unit] = visit->number - count();  // in the micro-batch before
  }

  std::vector<GatherRule> run() {
    std::vector<GatherRule> rules;
    for (const Visit* visit : visits_) {
      GatherRule rule = rule_of(*visit);
      if (rule.needed) latest_ = rule.after = std::max(rule.after, latest_);
      rules.push_back(rule);
    }
    return rules;
  }

 private:
  int count() const { return static_cast<int>(visits_.size()); }
  bool gathered(UnitId unit) const { return unit_bytes_[unit.value] > 0; }
  bool transient(UnitId unit) const { return gathered(unit) && keep_of(options_, unit) == Keep::visit; }

  bool needed(const Visit& visit) const {
    if (!gathered(visit.unit)) return false;
    const Keep keep = keep_of(options_, visit.unit);
    return keep == Keep::visit || (visit.opens_unit && (keep == Keep::micro_batch || first_));
  }

  GatherRule rule_of(const Visit& visit) {
    const int v = visit.number, own = std::exchange(previous_[visit.unit], v);
    GatherRule rule{.needed = needed(visit)};
    rule.after = within_limits(visit, std::max(v - 1 - depth_of(visit), own));
    rule.after_reduce = options_.prefetch == BackwardPrefetch::none && visit.phase == Phase::backward &&
                        rule.after == v - 1 && own != v - 1;
    return rule;
  }

  int depth_of(const Visit& visit) const {
    if (visit.phase == Phase::forward) return options_.forward_prefetch;
    return options_.prefetch == BackwardPrefetch::pre ? options_.prefetch_depth : 0;
  }

  /// The earliest visit, not before `earliest`, such that those behind it up to `visit` fit into the limits.
  int within_limits(const Visit& visit, int earliest) const {
    if (!transient(visit.unit)) return earliest;
    int gathered = 1;
    std::int64_t bytes = unit_bytes_[visit.unit.value];
    for (int v = visit.number - 1; v > earliest; --v) {
      const UnitId unit = visits_[static_cast<std::size_t>((v + count()) % count())]->unit;
      if (!transient(unit)) continue;
      bytes += unit_bytes_[unit.value];
      if (++gathered > options_.gather_limit || bytes > options_.gather_limit_bytes) return v;
    }
    return earliest;
  }

  const std::vector<std::int64_t>& unit_bytes_;
  const ScheduleOptions& options_;
  bool first_;
  std::vector<const Visit*> visits_;  // by number
  std::map<UnitId, int> previous_;
  int latest_ = INT_MIN;
};

}  // namespace

std::vector<GatherRule> gather_rules(const std::vector<Visit>& visits, const std::vector<std::int64_t>& unit_bytes,
                                     const ScheduleOptions& options, bool first) {
  return Rules(visits, unit_bytes, options, first).run();
}

}  // namespace foreshard::plan
