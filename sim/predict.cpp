#include "sim/predict.hpp"

#include <algorithm>
#include <cmath>

#include "model/attention_pairs.hpp"
#include "plan/query.hpp"
#include "sim/cost/stragglers.hpp"
#include "sim/gpu_op_cost.hpp"
#include "sim/hardware_sources.hpp"
#include "sim/virtual_time.hpp"
#include "trace/analysis.hpp"

namespace foreshard::sim {
namespace {

Handover handover_of(const Machine& machine, const Layout& layout) {
  const bool alone = layout.ranks_per_node == 1;
  return {to_nanoseconds((alone ? machine.handover_alone_s : machine.handover_next_s).value),
          to_nanoseconds(machine.handover_wake_s.value)};
}

std::array<double, plan::lane_count> lane_busy_s(const plan::Plan& plan, const Simulation& simulation) {
  std::array<double, plan::lane_count> busy{};
  for (const trace::Event& event : simulation.events) {
    const int times = event.micro_batch == simulation.repeated ? 1 + simulation.copies : 1;
    busy[static_cast<std::size_t>(plan.ops[event.op].lane)] += 1e-9 * static_cast<double>(event.duration_ns) * times;
  }
  return busy;
}

/// Each copy of the repeated micro-batch adds what the first one adds.
double exposed_s(const plan::Plan& plan, const Simulation& simulation) {
  const auto exposed = [&](std::span<const trace::Event> events) {
    return 1e-9 * static_cast<double>(trace::exposed_communication_ns(events, plan));
  };
  const double without = exposed(simulation.events);
  if (simulation.copies == 0) return without;
  return without + simulation.copies * (exposed(expanded(plan, simulation, 1)) - without);
}

plan::OpId compute_op_at(const plan::Plan& plan, const Simulation& simulation, std::int64_t time_ns) {
  plan::OpId found;
  for (const trace::Event& event : simulation.events)
    if (plan.ops[event.op].lane == plan::Lane::compute && event.start_ns <= time_ns) found = {event.op};
  return found;
}

void add_times(Prediction& prediction, const plan::Plan& plan) {
  const Simulation& simulation = prediction.simulation;
  prediction.step_time_s = 1e-9 * static_cast<double>(simulation.step_ns);
  prediction.lane_busy_s = lane_busy_s(plan, simulation);
  prediction.exposed_comm_s = exposed_s(plan, simulation);
  prediction.model_flops = model_flops(plan);
  prediction.tflops_per_device = prediction.model_flops / prediction.step_time_s / 1e12;
  prediction.collectives = trace::collectives_of(plan);
}

void add_memory(Prediction& prediction, const plan::Plan& plan, std::int64_t besides_bytes) {
  prediction.arena_bytes = plan.arena_bytes;
  prediction.host_arena_bytes = plan.host_arena_bytes;
  prediction.peak = trace::peak_of(trace::memory_timeline(plan, prediction.simulation.events));
  prediction.peak_op = compute_op_at(plan, prediction.simulation, prediction.peak.time_ns);
  prediction.process_base_bytes = besides_bytes;
  prediction.rss_bytes = prediction.arena_bytes + prediction.host_arena_bytes + besides_bytes;
}

std::int64_t process_bytes(const Machine& machine, int ranks_per_node) {
  return std::llround(machine.process_base_bytes.value + machine.process_shared_bytes.value / ranks_per_node);
}

const Quantity context_bytes{0.47 * (1 << 30), "published: CUDA context on A100 0.47 GiB (stas00/ml-engineering)"};
const Quantity communicator_bytes{688.0 * (1 << 20), "published: a communicator 688 MiB (NVIDIA/nccl issue 964)"};

OnGpu on_gpu(const plan::Plan& plan, const Cluster& cluster, const cost::GpuProfile& profile) {
  const Device& device = cluster.device;
  const bool half = std::ranges::any_of(plan.units, [](const auto& unit) { return size_bytes(unit.gathered) == 2; });
  return {.cluster = cluster.name,
          .gpu = device.name,
          .runtime = "foreshard-cuda",
          .gpus_per_node = cluster.gpus_per_node,
          .peak_flops_per_s = half ? rates_of(device).half_flops : device.fp32_flops.value,
          .memory_bytes = std::llround(device.memory_bytes.value),
          .slowest_rank_factor = cost::slowest_rank_factor(profile.jitter_sigma.value, plan.mesh.world_size()),
          .flops = flop_basis(plan),
          .hardware = hardware_sources(cluster, plan.mesh.world_size())};
}

}  // namespace

std::int64_t device_bytes_besides(const plan::Mesh& mesh) {
  const int communicators = (mesh.shard_degree() > 1 ? 2 : 0) + (mesh.replicas > 1 ? 1 : 0);
  return std::llround(context_bytes.value + communicators * communicator_bytes.value);
}

int ranks_per_node(const Machine& machine, int world_size) {
  int most = machine.cores;
  for (const CollectiveTable& table : machine.collectives) most = std::max(most, table.ranks);
  return std::min(most, world_size);
}

namespace {

/// Of a token: 2 of each parameter in forward, 2 in backward for what it multiplies, 2 for its own gradient if it is
/// trained.
double parameter_flops(const plan::Plan& plan) {
  return 4.0 * static_cast<double>(plan.parameters) + 2.0 * static_cast<double>(plan::trained_parameters(plan));
}

bool is_attention(OpKind kind) {
  return kind == OpKind::attention || kind == OpKind::full_attention || kind == OpKind::reattention;
}

/// Keys that a token of an attention may attend to, the causal mask apart.
std::int64_t attended_length(const plan::Op& op) {
  return op.kind == OpKind::attention ? model::attended_length(op.sizes.seq, op.sizes.rows) : op.sizes.rows;
}

/// What the profile of a model says of a micro-batch; 0 where the model is known by its operators.
double profiled_flops(const plan::Plan& plan) {
  double flops = 0;
  for (const plan::Op& op : plan.ops_of(plan.segments.front()))
    if (op.kind == OpKind::opaque_backward || (op.kind == OpKind::opaque && op.phase == plan::Phase::forward))
      flops += op.cost.flops;
  return flops;
}

}  // namespace

double model_flops(const plan::Plan& plan) {
  if (const double profiled = profiled_flops(plan); profiled > 0) return profiled * plan.micro_batches;
  double per_token = parameter_flops(plan);
  for (const plan::Op& op : plan.ops_of(plan.segments.front()))
    if (is_attention(op.kind) && op.phase == plan::Phase::forward)
      per_token += 12.0 * static_cast<double>(op.sizes.heads * op.sizes.inner * attended_length(op));
  return per_token * static_cast<double>(plan.micro_batch_tokens) * plan.micro_batches;
}

Prediction predict(const plan::Plan& plan, const Machine& machine, const Layout& layout) {
  Prediction prediction;
  OpCost cost(plan, machine, layout);
  prediction.simulation = simulate_step(plan, std::ref(cost), cost.cores_per_rank(), handover_of(machine, layout));
  prediction.sources = cost.sources();
  add_times(prediction, plan);
  add_memory(prediction, plan, process_bytes(machine, layout.ranks_per_node));
  return prediction;
}

Prediction predict_on_gpus(const plan::Plan& plan, const Cluster& cluster) {
  const cost::GpuProfile& profile = cost::gpu_profile();
  Prediction prediction{.gpu = on_gpu(plan, cluster, profile)};
  GpuOpCost cost(plan, cluster, profile, prediction.gpu->slowest_rank_factor);
  prediction.simulation = simulate_step(plan, std::ref(cost), 1, {}, cluster.device.multiprocessors);
  prediction.sources = cost.sources();
  for (const Quantity* used :
       {&profile.jitter_sigma, &context_bytes, &communicator_bytes, &cluster.device.memory_bytes})
    prediction.sources.insert(used->source);
  add_times(prediction, plan);
  add_memory(prediction, plan, device_bytes_besides(plan.mesh));
  return prediction;
}

}  // namespace foreshard::sim
