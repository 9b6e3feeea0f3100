#include "plan/visits.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace foreshard::plan {

std::vector<Visit> visits_of(const model::Graph& graph) {
  std::vector<Visit> visits;
  std::vector<std::size_t> last(graph.units.size(), 0);
  int numbered = 0;
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const model::Operator& op = graph.operators[i];
    const bool root = op.unit == model::root_unit;
    if (visits.empty() || visits.back().unit != op.unit || visits.back().phase != op.phase)
      visits.push_back({.unit = op.unit, .phase = op.phase, .first = i, .number = root ? -1 : numbered++});
    ++visits.back().count;
    last[op.unit.value] = visits.size() - 1;
  }
  for (const std::size_t visit : last) visits[visit].ends_backward = visits[visit].phase == Phase::backward;
  return visits;
}

namespace {

int depth_of(const Visit& visit, const ScheduleOptions& options) {
  if (visit.phase == Phase::forward) return options.forward_prefetch;
  return options.prefetch == BackwardPrefetch::pre ? options.prefetch_depth : 0;
}

}  // namespace

std::vector<GatherRule> gather_rules(const std::vector<Visit>& visits, const ScheduleOptions& options) {
  std::vector<GatherRule> rules;
  std::map<model::UnitId, int> previous;
  const auto numbered = static_cast<int>(std::ranges::count_if(visits, [](const Visit& v) { return v.number >= 0; }));
  for (const Visit& visit : visits)
    if (visit.number >= 0) previous[visit.unit] = visit.number - numbered;  // its last visit in the micro-batch before
  for (const Visit& visit : visits) {
    const int v = visit.number;
    if (v < 0) continue;
    const int own = std::exchange(previous[visit.unit], v);
    GatherRule rule{.after = std::max({v - 1 - depth_of(visit, options), v - options.gather_limit, own})};
    rule.after_reduce = options.prefetch == BackwardPrefetch::none && visit.phase == Phase::backward &&
                        rule.after == v - 1 && own != v - 1;
    if (!rules.empty()) rule.after = std::max(rule.after, rules.back().after);
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace foreshard::plan
