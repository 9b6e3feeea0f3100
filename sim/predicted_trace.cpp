#include "sim/predicted_trace.hpp"

#include <limits>

#include "trace/writer.hpp"

namespace foreshard::sim {
namespace {

constexpr double none = std::numeric_limits<double>::quiet_NaN();

trace::StepRow step_row(const Prediction& prediction, const plan::Plan& plan) {
  return {.step = 1,
          .rank = 0,
          .start_ns = 0,
          .duration_ns = prediction.simulation.step_ns,
          .loss = none,
          .grad_norm = none,
          .tokens = plan.micro_batch_tokens * plan.micro_batches};
}

trace::MemoryRow memory_row(const Prediction& prediction) {
  return {.rank = 0,
          .step = 1,
          .time_ns = prediction.peak.time_ns,
          .bytes = prediction.peak.bytes,
          .arena_touched_bytes = prediction.arena_bytes,
          .rss_bytes = prediction.rss_bytes};
}

trace::Summary summary_of(const Prediction& prediction) {
  return {.collectives = prediction.collectives,
          .arena_bytes = prediction.arena_bytes,
          .arena_touched_bytes = prediction.arena_bytes,
          .host_arena_bytes = prediction.host_arena_bytes,
          .rss_bytes = prediction.rss_bytes,
          .base_rss_bytes = prediction.process_base_bytes,
          .step_time_s = prediction.step_time_s,
          .tflops_per_device = prediction.tflops_per_device,
          .exposed_comm_s = prediction.exposed_comm_s};
}

}  // namespace

void write_trace(const std::string& path, trace::RunInfo run, const Prediction& prediction, const plan::Plan& plan,
                 bool force) {
  run.kind = trace::Kind::predicted;
  run.world_size = plan.mesh.world_size();
  run.clock = "virtual";
  trace::Writer writer(path, run, plan, {}, force);
  writer.append(0, expanded(plan, prediction.simulation, prediction.simulation.copies));
  writer.append(step_row(prediction, plan));
  writer.append(memory_row(prediction));
  writer.set_summary(summary_of(prediction));
  writer.close();
}

}  // namespace foreshard::sim
