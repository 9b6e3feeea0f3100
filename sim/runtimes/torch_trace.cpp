#include <limits>

#include "sim/runtimes/torch_report.hpp"
#include "trace/writer.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;
using plan::Lane;

Lane lane_of(Stream stream) {
  constexpr Lane lanes[] = {Lane::compute, Lane::copy, Lane::gather, Lane::reduce, Lane::replicate};
  return lanes[static_cast<std::size_t>(stream)];
}

plan::GroupKind group_of(OpKind kind) {
  if (kind == OpKind::all_gather || kind == OpKind::reduce_scatter) return plan::GroupKind::shard;
  return kind == OpKind::all_reduce ? plan::GroupKind::replica : plan::GroupKind::none;
}

plan::Op op_of(const Ran& ran) {
  plan::Op op{.kind = ran.kind, .lane = lane_of(ran.stream), .group = group_of(ran.kind), .unit = {ran.unit}};
  op.phase = ran.backward ? plan::Phase::backward : plan::Phase::forward;
  if (ran.phase == StepPhase::update) op.phase = plan::Phase::update;
  op.cost.read_bytes = ran.bytes;
  if (op.group == plan::GroupKind::none) return op;
  op.sizes.rows = static_cast<std::int64_t>(ran.bytes / 4);  // of 4 bytes each, by the one operand of all collectives
  op.first_operand = 0, op.input_count = 1;
  return op;
}

/// What ran, as a plan: the ops of the step in the order of issue, then those of the update.
plan::Plan plan_of(const TorchPrediction& prediction, const TorchJob& job) {
  plan::Plan plan{.operands = {plan::Operand{}},
                  .mesh = {.replicas = job.run.wrap.replicas, .inner = job.run.wrap.world},
                  .micro_batch_tokens = job.run.batch.tokens() * job.run.micro_batches,
                  .parameters = static_cast<std::int64_t>(job.parameters)};
  for (const Ran& ran : prediction.ran) plan.ops.push_back(op_of(ran));
  const auto updates = static_cast<std::uint32_t>(std::ranges::count(plan.ops, plan::Phase::update, &plan::Op::phase));
  const auto all = static_cast<std::uint32_t>(plan.ops.size());
  plan.segments = {{.name = plan::Segment::Name::only, .first_op = 0, .op_count = all - updates},
                   {.name = plan::Segment::Name::update, .first_op = all - updates, .op_count = updates}};
  const std::size_t units = unit_shapes(job.run.model).size();
  for (std::size_t unit = 0; unit < units; ++unit)
    plan.unit_names.push_back(unit == 0 ? "root" : "u" + std::to_string(unit - 1));
  plan.units.resize(plan.unit_names.size());
  for (auto& segment : plan.segments)
    for (auto& points : segment.points) points.resize(plan.units.size());
  return plan;
}

std::vector<trace::Event> events_of(const TorchPrediction& prediction) {
  std::vector<trace::Event> events;
  for (std::uint32_t op = 0; op < prediction.ran.size(); ++op) {
    const Span& span = prediction.ran[op].span;
    events.push_back({.start_ns = span.start - prediction.step_start,
                      .duration_ns = span.end - span.start,
                      .op = op,
                      .step = 1,
                      .micro_batch = prediction.ran[op].phase == StepPhase::update ? 1 : 0});
  }
  return events;
}

trace::Summary summary_of(const TorchPrediction& prediction, const plan::Plan& plan) {
  trace::Summary summary;
  for (const plan::Op& op : plan.ops) {
    if (op.group == plan::GroupKind::none) continue;
    trace::Collectives& all = summary.collectives;
    trace::CollectiveTotal& total = op.kind == OpKind::all_gather       ? all.all_gather
                                    : op.kind == OpKind::reduce_scatter ? all.reduce_scatter
                                                                        : all.all_reduce;
    ++total.count, total.payload_bytes += static_cast<std::uint64_t>(plan::payload_bytes(plan, op));
  }
  summary.step_time_s = prediction.steady.seconds;
  summary.exposed_comm_s = prediction.steady.exposed_s;
  summary.tflops_per_device =
      flops_per_token(prediction.flops, FlopConvention::palm) * prediction.flops.tokens / summary.step_time_s / 1e12;
  summary.arena_bytes = prediction.memory.steps.back().peak;
  return summary;
}

}  // namespace

void write_trace(const std::string& path, trace::RunInfo run, const TorchPrediction& prediction, const TorchJob& job,
                 bool force) {
  const plan::Plan plan = plan_of(prediction, job);
  run.kind = trace::Kind::predicted;
  run.world_size = plan.mesh.world_size();
  run.clock = "virtual";
  trace::Writer writer(path, run, plan, {}, force);
  std::vector<trace::Event> events = events_of(prediction);
  std::ranges::stable_sort(
      events, {}, [&](const trace::Event& event) { return std::pair(plan.ops[event.op].lane, event.start_ns); });
  constexpr double none = std::numeric_limits<double>::quiet_NaN();
  writer.append(0, events);
  writer.append(trace::StepRow{.step = 1,
                               .duration_ns = static_cast<Nanoseconds>(prediction.steady.seconds * 1e9),
                               .loss = none,
                               .grad_norm = none,
                               .tokens = plan.micro_batch_tokens});
  writer.set_summary(summary_of(prediction, plan));
  writer.close();
}

}  // namespace foreshard::sim::torch
