#include "sim/planner/evaluator.hpp"

#include <algorithm>
#include <functional>

#include "plan/build.hpp"
#include "sim/predict.hpp"
#include "sim/simulate.hpp"

namespace foreshard::sim::planner {

std::shared_ptr<const model::Graph> TrainingGraphs::of(const Point& point, const plan::Settings& settings) {
  const bool adds_up = settings.schedule.accumulation == plan::Accumulation::no_sync && point.micro_batches > 1;
  const Key key{point.parameters, point.reduction, point.recompute,  point.recompute_every,
                point.gpus == 1,  adds_up,         point.local_batch};
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find(kept_, key, [](const auto& entry) { return entry.first; });
  if (found != kept_.end()) {
    kept_.splice(kept_.begin(), kept_, found);
    return found->second;
  }
  const model::Graph forward = model::build(settings.model, settings.batch);
  auto graph =
      std::make_shared<const model::Graph>(plan::build_training_graph(forward, settings.mesh, settings.schedule));
  kept_.emplace_front(key, graph);
  if (kept_.size() > most_kept) kept_.pop_back();
  return graph;
}

Evaluation OwnRuntime::evaluate(const Point& point) {
  const plan::Settings settings = settings_of(base_, point);
  const auto graph = graphs_.of(point, settings);
  const plan::Plan plan = plan::build_plan_of(*graph, settings.mesh, settings.schedule);
  GpuOpCost cost(plan, cluster_, cost::gpu_profile(), bounds_.slowest_rank_factor(point.gpus));
  const Simulation simulation = simulate_step(plan, std::ref(cost), 1, {}, cluster_.device.multiprocessors);
  return {.step_s = 1e-9 * static_cast<double>(simulation.step_ns),
          .memory_bytes = plan.arena_bytes + device_bytes_besides(plan.mesh),
          .host_memory_bytes = plan.host_arena_bytes};
}

}  // namespace foreshard::sim::planner
