#include "tiny_run.hpp"

#include <unistd.h>

#include "trace/analysis.hpp"
#include "trace/writer.hpp"

namespace foreshard::trace {
namespace {

using plan::Lane;
using plan::OpKind;
using plan::Plan;
using plan::Wait;

plan::BufferId add_buffer(Plan& plan, plan::MemoryClass memory, std::int64_t size_bytes, bool persistent) {
  plan.buffers.push_back(
      {.size_bytes = size_bytes, .offset_bytes = plan.arena_bytes, .memory = memory, .persistent = persistent});
  plan.arena_bytes += size_bytes;
  return {static_cast<std::uint32_t>(plan.buffers.size() - 1)};
}

void add_op(Plan& plan, OpKind kind, Lane lane, plan::Phase phase, std::vector<plan::BufferId> reads,
            std::vector<plan::BufferId> writes, std::vector<Wait> waits) {
  plan::Op op{.kind = kind, .lane = lane, .phase = phase};
  op.unit = {0};
  op.sizes.rows = lane == Lane::compute ? 64 : 256;
  op.cost = {.flops = 1000, .read_bytes = 256, .written_bytes = 128};
  op.wire_bytes = lane == Lane::compute ? 0 : 512;
  op.group = lane == Lane::compute ? plan::GroupKind::none : plan::GroupKind::shard;
  op.first_operand = static_cast<std::uint32_t>(plan.operands.size());
  op.input_count = static_cast<std::uint32_t>(reads.size());
  op.output_count = static_cast<std::uint32_t>(writes.size());
  for (const auto id : reads) plan.operands.push_back({.buffer = id, .size_bytes = plan.buffers[id.value].size_bytes});
  for (const auto id : writes)
    plan.operands.push_back({.buffer = id, .size_bytes = plan.buffers[id.value].size_bytes, .written = true});
  op.first_wait = static_cast<std::uint32_t>(plan.waits.size());
  op.wait_count = static_cast<std::uint32_t>(waits.size());
  plan.waits.insert(plan.waits.end(), waits.begin(), waits.end());
  plan.ops.push_back(op);
}

}  // namespace

Plan tiny_plan() {
  using plan::MemoryClass;
  using plan::Phase;
  Plan plan;
  plan.mesh = {.replicas = 1, .outer = 1, .inner = 2};
  plan.micro_batch_tokens = 16;
  plan.parameters = 250;
  plan.unit_names = {"root"};
  const auto shard = add_buffer(plan, MemoryClass::parameters, 512, true);
  const auto whole = add_buffer(plan, MemoryClass::gathered, 1024, false);
  const auto activation = add_buffer(plan, MemoryClass::activations, 128, false);
  const auto gradient = add_buffer(plan, MemoryClass::unsharded_gradients, 1024, false);
  const auto gradient_shard = add_buffer(plan, MemoryClass::gradients, 512, true);
  plan::FlatParameter flat{.pieces = {{{0}, 0, 250}}, .elements = 250, .padded_elements = 256, .shard_elements = 128};
  flat.parameter_shard = shard;
  flat.gradient_shard = gradient_shard;
  plan.units = {flat};
  add_op(plan, OpKind::all_gather, Lane::gather, Phase::forward, {shard}, {whole}, {});
  add_op(plan, OpKind::linear, Lane::compute, Phase::forward, {whole}, {activation}, {{Wait::On::op, 0}});
  add_op(plan, OpKind::linear_weight_grad, Lane::compute, Phase::backward, {activation}, {gradient}, {});
  add_op(plan, OpKind::reduce_scatter, Lane::reduce, Phase::backward, {gradient}, {gradient_shard},
         {{Wait::On::op, 2}});
  add_op(plan, OpKind::adamw, Lane::compute, Phase::update, {gradient_shard}, {shard}, {{Wait::On::reduced, 0}});
  plan::Segment only{.name = plan::Segment::Name::only, .first_op = 0, .op_count = 4};
  only.points = {{{{1}}, {{3}}, {plan::OpId::none()}}};
  plan.segments = {only, {.name = plan::Segment::Name::update, .first_op = 4, .op_count = 1}};
  return plan;
}

std::vector<Event> tiny_step(std::int64_t start_ns, std::int32_t step) {
  std::vector<Event> events;
  for (std::uint32_t op = 0; op < 5; ++op)
    events.push_back({.start_ns = start_ns + 100 * op,
                      .duration_ns = 100,
                      .op = op,
                      .step = step,
                      .micro_batch = op == 4 ? 1 : 0,
                      .received_bytes = op == 0 || op == 3 ? 512u : 0u});
  return events;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "foreshard-trace-XXXXXX").string();
  path_ = mkdtemp(pattern.data());
}

TemporaryFolder::~TemporaryFolder() { std::filesystem::remove_all(path_); }

Summary tiny_summary(const Plan& plan) {
  return {.collectives = collectives_of(plan),
          .arena_bytes = plan.arena_bytes,
          .arena_touched_bytes = 4096,
          .rss_bytes = 1'000'000,
          .base_rss_bytes = 900'000,
          .step_time_s = 500e-9,
          .tflops_per_device = 0.006,
          .exposed_comm_s = 200e-9};
}

void write_tiny(const std::string& path, int ranks, int steps, Kind kind, const Plan& plan,
                void (*change)(std::vector<Event>&)) {
  std::vector<RankInfo> hosts;
  for (int rank = 0; rank < ranks; ++rank) hosts.push_back({"host", 0, rank});
  Writer writer(path, {.kind = kind, .run_id = "tiny", .command_line = "test", .world_size = ranks}, plan, hosts);
  for (int step = 1; step <= steps; ++step) {
    for (int rank = 0; rank < ranks; ++rank) {
      const std::int64_t start_ns = 1000 * step + rank;
      auto events = tiny_step(start_ns, step);
      if (change && rank == 0 && step == 1) change(events);
      const auto id = static_cast<std::uint32_t>(rank);
      writer.append(id, events);
      writer.append(StepRow{step, id, start_ns, 500, 3.0 / step, 1.0, 16});
      writer.append(
          MemoryRow{.rank = id, .step = step, .time_ns = start_ns + 200, .bytes = {512, 512, 0, 0, 1024, 128, 0}});
    }
    writer.flush();
  }
  writer.set_summary(tiny_summary(plan));
  writer.close();
}

}  // namespace foreshard::trace
