#include "sim/gpu_op_cost.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "sim/cost/gpu_gemm.hpp"
#include "sim/cost/gpu_memory.hpp"
#include "sim/cost/measured_kernel.hpp"
#include "sim/cost/shape.hpp"
#include "sim/network/collective.hpp"
#include "sim/op_cost.hpp"
#include "sim/virtual_time.hpp"

namespace foreshard::sim {
namespace {

using cost::Running;

bool is_half(DType type) { return type == DType::bf16 || type == DType::f16; }

cost::Product product_of(const plan::Op& op, DType type) {
  const Sizes& s = op.sizes;
  const cost::Math math = is_half(type) ? cost::Math::half : cost::Math::f32;
  switch (op.kind) {
    case OpKind::linear_input_grad:
      return {1, s.rows, s.inner, s.cols, math, size_bytes(type)};
    case OpKind::linear_weight_grad:
      return {1, s.cols, s.inner, s.rows, math, size_bytes(type)};
    default:
      return {1, s.rows, s.cols, s.inner, math, size_bytes(type)};
  }
}

bool is_product(OpKind kind) {
  return kind == OpKind::linear || kind == OpKind::linear_input_grad || kind == OpKind::linear_weight_grad;
}

bool is_attention_backward(OpKind kind) {
  return kind == OpKind::attention_backward || kind == OpKind::full_attention_backward;
}
bool is_full_attention(OpKind kind) {
  return kind == OpKind::full_attention || kind == OpKind::full_attention_backward;
}
bool is_attention(OpKind kind) {
  return kind == OpKind::attention || is_attention_backward(kind) || is_full_attention(kind);
}
bool is_copy(OpKind kind) { return kind == OpKind::fetch || kind == OpKind::offload; }

const Quantity host_bytes_per_s{
    300e9,
    "assumed: a node's processors read and write 300 GB/s (two sockets of eight channels DDR4-3200: 410 at best)"};

network::Group group_of(const cost::Members& members) {
  return {members.ranks, members.on_node, 1 + members.in_equal_groups / members.on_node};
}

/// The same op of other sizes: what it moves and computes is in proportion to its work.
plan::Op resized(plan::Op op, const Sizes& sizes) {
  const auto work = [&](const Sizes& s) { return cost::shape_of(op.kind, s, op.accumulate).work; };
  const double part = work(sizes) / work(op.sizes);
  op.sizes = sizes;
  for (double* amount : {&op.cost.read_bytes, &op.cost.written_bytes, &op.cost.flops}) *amount *= part;
  return op;
}

}  // namespace

GpuOpCost::GpuOpCost(const plan::Plan& plan, const Cluster& cluster, const cost::GpuProfile& profile,
                     double compute_factor)
    : plan_(plan),
      cluster_(cluster),
      measured_(cluster.measured.get()),
      gpu_(rates_of(cluster.device)),
      profile_(profile),
      compute_factor_(compute_factor) {}

GpuOpCost::Key GpuOpCost::key_of(const plan::Op& op) const {
  const bool moves = op.group != plan::GroupKind::none;
  return {op.kind,
          op.group,
          type_of(plan_, op),
          op.sizes,
          op.cost.read_bytes,
          op.cost.written_bytes,
          moves ? plan::payload_bytes(plan_, op) : 0,
          works_in_host(op),
          measured_ && op.accumulate};
}

/// Copies apart, which are named as such.
bool GpuOpCost::works_in_host(const plan::Op& op) const {
  if (plan_.host_arena_bytes == 0 || is_copy(op.kind)) return false;
  const auto operands = std::span(plan_.operands).subspan(op.first_operand, op.input_count + op.output_count);
  return std::ranges::any_of(operands, [&](const plan::Operand& operand) {
    return operand.present() && plan_.buffers[operand.buffer.value].space == plan::Space::host;
  });
}

std::size_t GpuOpCost::KeyHash::operator()(const Key& key) const {
  return hash_of(key.sizes, static_cast<std::uint64_t>(key.kind) * 256 + static_cast<std::uint64_t>(key.dtype) * 16 +
                                static_cast<std::uint64_t>(key.group));
}

Demand GpuOpCost::operator()(const plan::Op& op) {
  const Key key = key_of(op);
  const auto found = known_.find(key);
  return found != known_.end() ? found->second : known_.emplace(key, estimate(op)).first->second;
}

Demand GpuOpCost::estimate(const plan::Op& op) {
  if (op.group != plan::GroupKind::none) return collective(op);
  if (is_copy(op.kind)) return copy(op);
  if (works_in_host(op)) return in_host(op);
  Kernel found = kernel(op);
  found.seconds = measured_seconds(op).value_or(found.seconds);
  const double seconds = compute_factor_ * std::max(found.seconds, least_seconds());
  return {.duration_ns = op_nanoseconds(seconds),
          .core = 0,
          .memory = std::min(1.0, found.memory_s / seconds),
          .blocks = found.blocks};
}

double GpuOpCost::least_seconds() const {
  return measured_ ? measured_->gpu->graph_kernel_s.value : profile_.graph_issue_s.value;
}

std::optional<double> GpuOpCost::measured_seconds(const plan::Op& op) {
  if (!measured_) return std::nullopt;
  std::string source;
  const auto formula = [&](const Sizes& sizes) { return kernel(resized(op, sizes)).seconds; };
  const cost::KernelCall call{op.kind, op.accumulate, type_of(plan_, op), op.sizes};
  const auto seconds = cost::measured_seconds(*measured_, call, formula, &source);
  if (seconds) sources_.insert(std::move(source));
  return seconds;
}

GpuOpCost::Kernel GpuOpCost::kernel(const plan::Op& op) {
  if (is_product(op.kind)) return product(op);
  if (op.kind == OpKind::opaque || op.kind == OpKind::opaque_backward) return opaque(op);
  if (op.kind == OpKind::reattention || op.kind == OpKind::reattention_backward) return reattention(op);
  return is_attention(op.kind) ? attention(op) : memory_bound(op);
}

/// At the part of the peak that its profile says, unless its operands take longer; in so many blocks that SMs which
/// collectives hold cost it no more than their part.
GpuOpCost::Kernel GpuOpCost::opaque(const plan::Op& op) {
  sources_.insert("as the model's profile says: part of the peak that its units reach");
  const double peak = is_half(type_of(plan_, op)) ? gpu_.half_flops : gpu_.f32_flops;
  constexpr std::int64_t many = 64;
  const Kernel moved = memory_bound(op);
  const double computed = op.cost.flops > 0 ? op.cost.flops / (static_cast<double>(op.scalar) * peak) : 0;
  return {std::max(computed, moved.seconds), moved.memory_s, many * gpu_.sms};
}

GpuOpCost::Kernel GpuOpCost::product(const plan::Op& op) {
  sources_.insert(profile_.gemm.rate.of(gpu_.arch).source);
  sources_.insert(profile_.gemm.sustained_part.of(gpu_.arch).source);
  const auto time = cost::gemm_time(profile_, gpu_, product_of(op, type_of(plan_, op)), Running::in_step);
  return {time.seconds, time.memory_s, time.blocks};
}

GpuOpCost::Kernel GpuOpCost::attention(const plan::Op& op) {
  const Sizes& s = op.sizes;
  const DType type = type_of(plan_, op);
  const bool causal = !is_full_attention(op.kind);
  const cost::Attention attention{s.batch, s.heads, s.seq, s.inner, causal, size_bytes(type), causal ? s.rows : 0};
  const auto kernel = is_half(type) ? cost::own_attention(gpu_.arch) : cost::AttentionKernel::unfused;
  std::string source;
  const double seconds = cost::attention_seconds(profile_, gpu_, attention, kernel, is_attention_backward(op.kind),
                                                 Running::in_step, &source);
  sources_.insert(std::move(source));
  return {seconds, memory_seconds(moved_bytes(op)),
          std::max<std::int64_t>(1, s.batch * s.heads * ((s.seq + 127) / 128))};
}

/// By plain loops in f32 (kernels/cuda/reattention.cu), of which backward makes all weights twice.
GpuOpCost::Kernel GpuOpCost::reattention(const plan::Op& op) {
  constexpr double part_of_peak = 0.1, twice = 1.5;
  sources_.insert("assumed: re-attention by loops in f32 reaches a tenth of the peak");
  const double flops = model::flops(op.kind, op.sizes) * (op.kind == OpKind::reattention_backward ? twice : 1);
  const Kernel moved = memory_bound(op);
  return {std::max(flops / (part_of_peak * gpu_.f32_flops), moved.seconds), moved.memory_s,
          std::max<std::int64_t>(1, op.sizes.batch * op.sizes.seq)};
}

double GpuOpCost::moved_bytes(const plan::Op& op) const {
  if (model::is_update(op.kind))
    return cost::update_bytes(static_cast<double>(op.sizes.rows), model::moment_count(op.kind), type_of(plan_, op));
  return op.cost.read_bytes + op.cost.written_bytes;
}

GpuOpCost::Kernel GpuOpCost::memory_bound(const plan::Op& op) {
  sources_.insert(profile_.hbm_part.source);
  const double bytes = moved_bytes(op);
  return {cost::memory_bound_seconds(profile_, gpu_, bytes, Running::in_step), memory_seconds(bytes)};
}

double GpuOpCost::memory_seconds(double bytes) const {
  return bytes / (profile_.hbm_part.value * gpu_.hbm_bytes_per_s);
}

double GpuOpCost::host_link_bytes_per_s(OpKind copy) {
  if (measured_) {
    const MeasuredGpu& gpu = *measured_->gpu;
    const Quantity& rate = copy == OpKind::fetch ? gpu.to_device_bytes_per_s : gpu.to_host_bytes_per_s;
    sources_.insert(rate.source);
    return rate.value;
  }
  sources_.insert("assumed: PCIe at 12 GB/s for 16 lanes of generation 3, twice as much for each further one");
  return pcie_bytes_per_s(cluster_.device);
}

Demand GpuOpCost::copy(const plan::Op& op) {
  const double bytes = std::max(op.cost.read_bytes, op.cost.written_bytes);
  const double seconds = profile_.memory_start_s.value + bytes / host_link_bytes_per_s(op.kind);
  return {.duration_ns = op_nanoseconds(seconds), .core = 0, .memory = std::min(1.0, memory_seconds(bytes) / seconds)};
}

Demand GpuOpCost::in_host(const plan::Op& op) {
  sources_.insert(host_bytes_per_s.source);
  const int ranks = std::min(cluster_.gpus_per_node, plan_.mesh.world_size());
  return {.duration_ns = op_nanoseconds(moved_bytes(op) * ranks / host_bytes_per_s.value), .core = 0};
}

void GpuOpCost::add_sources(const cost::Members& members) {
  const Fabric& fabric = members.ranks == members.on_node ? cluster_.intra : cluster_.fabric;
  sources_.insert("published: NCCL's own model of collectives (NVIDIA/nccl src/graph/tuning.cc)");
  for (const Quantity* used : {&fabric.floor_s, &fabric.efficiency, &fabric.all_gather_s_per_sqrt_byte})
    sources_.insert(used->source);
}

/// Of all members on equal parts of so many nodes; else a table is of other groups.
const CollectiveTable* GpuOpCost::measured_collective(OpKind kind, const cost::Members& members) const {
  if (!measured_ || members.ranks % members.on_node != 0) return nullptr;
  return cost::measured_collective(*measured_, kind, members.ranks, members.ranks / members.on_node);
}

Demand GpuOpCost::collective(const plan::Op& op) {
  const auto members = members_of(plan_.mesh, op.group, std::min(cluster_.gpus_per_node, plan_.mesh.world_size()));
  const auto bytes = static_cast<double>(plan::payload_bytes(plan_, op));
  const OpKind kind = cost::measured_kind(op.kind);
  const CollectiveTable* table = measured_collective(kind, members);
  const auto cost_of = [&](double size) {
    network::CollectiveCost cost = network::collective_time(cluster_, {}, kind, size, group_of(members));
    if (table) cost.seconds = cost::table_seconds(table->points, size);
    return cost;
  };
  const network::CollectiveCost cost = cost_of(bytes);
  if (table)
    sources_.insert(table->source);
  else if (members.ranks > 1)
    add_sources(members);
  const double transfer_s = std::clamp(cost_of(2 * bytes).seconds - cost.seconds, 0.0, cost.seconds);
  const double seconds = table ? cost.seconds : std::max(cost.seconds, profile_.memory_start_s.value);
  return {.duration_ns = op_nanoseconds(seconds),
          .core = 0,
          .link = std::min(1.0, transfer_s / seconds),
          .memory = std::min(1.0, memory_seconds(2 * cost::passes(op.kind) * bytes) / seconds),
          .held_sms = cost.channels};
}

}  // namespace foreshard::sim
