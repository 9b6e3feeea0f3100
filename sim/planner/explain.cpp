#include "sim/planner/explain.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "sim/gpu_op_cost.hpp"
#include "sim/planner/remedies.hpp"

namespace foreshard::sim::planner {
namespace {

constexpr std::size_t most_groups = 6;

double total_s(const OpGroup& group) { return group.count * group.seconds; }

/// The groups of a step's ops that `wanted` takes, the longest in all first.
template <class Wanted>
std::vector<OpGroup> longest(const plan::Plan& plan, const Cluster& cluster, Wanted wanted) {
  GpuOpCost alone(plan, cluster, cost::gpu_profile(), 1);
  using Key = std::tuple<plan::OpKind, plan::GroupKind, DType, std::array<std::int64_t, 6>>;
  std::map<Key, OpGroup> groups;
  for (const plan::Segment& segment : plan.segments)
    for (const plan::Op& op : plan.ops_of(segment)) {
      if (!wanted(op)) continue;
      const Sizes& s = op.sizes;
      const DType dtype = type_of(plan, op);
      OpGroup& group = groups[{op.kind, op.group, dtype, {s.rows, s.cols, s.inner, s.batch, s.seq, s.heads}}];
      const Demand demand = alone(op);
      group = {op,
               dtype,
               group.count + plan.times(segment),
               1e-9 * static_cast<double>(demand.duration_ns),
               demand.held_sms,
               plan.mesh.members(op.group)};
    }
  std::vector<OpGroup> sorted;
  for (const auto& entry : groups) sorted.push_back(entry.second);
  std::ranges::stable_sort(sorted, std::ranges::greater{}, total_s);
  if (sorted.size() > most_groups) sorted.resize(most_groups);
  return sorted;
}

std::vector<Effect> effects_of(const plan::Settings& settings, const Cluster& cluster) {
  TrainingGraphs graphs(settings);
  OwnRuntime runtime(settings, cluster, graphs);
  const Point point = point_of(settings);
  std::vector<Point> others = thriftier(point, cluster.gpus);
  std::ranges::copy(faster(point, cluster.gpus_per_node), std::back_inserter(others));
  std::vector<Effect> effects;
  for (std::size_t i = 0; i < others.size(); ++i) {
    if (std::find(others.begin(), others.begin() + static_cast<std::ptrdiff_t>(i), others[i]) !=
        others.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    const Evaluation found = runtime.evaluate(others[i]);
    effects.push_back({changes(point, others[i]), found.step_s, found.memory_bytes});
  }
  std::ranges::stable_sort(effects, {}, &Effect::memory_bytes);
  return effects;
}

}  // namespace

Explanation explain(const plan::Settings& settings, const plan::Plan& plan, const Prediction& prediction,
                    const Cluster& cluster) {
  const auto computes = [](const plan::Op& op) { return op.lane == plan::Lane::compute; };
  const auto communicates = [](const plan::Op& op) { return op.group != plan::GroupKind::none; };
  return {.parts = time_parts(plan, prediction, cluster),
          .kernels = longest(plan, cluster, computes),
          .collectives = longest(plan, cluster, communicates),
          .effects = effects_of(settings, cluster),
          .step_s = prediction.step_time_s,
          .memory_bytes = prediction.arena_bytes + prediction.process_base_bytes};
}

}  // namespace foreshard::sim::planner
