#include "plan/build.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace foreshard::plan {
namespace {

void expect_supported(const Mesh& mesh, const ScheduleOptions& options) {
  FORESHARD_EXPECT(mesh.replicas >= 1 && mesh.outer >= 1 && mesh.inner >= 1, "a mesh has at least one rank an axis");
  FORESHARD_EXPECT(options.gather_limit >= 1 && options.reduce_limit >= 1 && options.micro_batches >= 1,
                   "limits and micro-batches are at least 1");
  const auto is_kept = [&](const Precision& precision) { return precision.parameters == options.master; };
  FORESHARD_EXPECT(
      !options.master || (is_kept(options.precision) && std::ranges::all_of(options.precision_of_unit, is_kept)),
      "units are gathered in the type in which their parameters are kept");
}

ScheduleOptions with_overrides(const ScheduleOptions& options, const model::Graph& wrapped) {
  ScheduleOptions resolved = options;
  if (!options.wrap.overrides.empty()) resolved.keep_of_unit = keeps(wrapped, options.wrap, options.keep);
  return resolved;
}

}  // namespace

model::Graph build_training_graph(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options) {
  const model::Graph wrapped = wrap(forward, options.wrap);
  const model::Graph used = set_types(leave_out(wrapped, options.left_out), mesh, options);
  return dequantise(lower(recompute(differentiate(used), options.recompute)));
}

Plan build_plan_of(const model::Graph& training, const Mesh& mesh, const ScheduleOptions& options) {
  expect_supported(mesh, options);
  const ScheduleOptions resolved = with_overrides(options, training);
  Plan plan = schedule(training, shard(training, mesh.shard_degree()), mesh, resolved);
  place(plan);
  return plan;
}

Plan build_plan(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options) {
  expect_supported(mesh, options);
  return build_plan_of(build_training_graph(forward, mesh, options), mesh, options);
}

Plan build_evaluation_plan(const model::Graph& forward, const Mesh& mesh, const ScheduleOptions& options) {
  expect_supported(mesh, options);
  const model::Graph wrapped = wrap(forward, options.wrap);
  const ScheduleOptions resolved = with_overrides(options, wrapped);
  const model::Graph graph = dequantise(lower(set_types(wrapped, mesh, resolved)));
  Plan plan = schedule_evaluation(graph, shard(graph, mesh.shard_degree()), mesh, resolved);
  place(plan);
  return plan;
}

}  // namespace foreshard::plan
