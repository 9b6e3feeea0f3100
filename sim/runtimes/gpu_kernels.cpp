#include "sim/runtimes/gpu_kernels.hpp"

#include <algorithm>

#include "sim/cost/gpu_memory.hpp"
#include "sim/cost/stragglers.hpp"
#include "sim/op_cost.hpp"

namespace foreshard::sim::torch {
namespace {

using cost::Running;

cost::Math math_of(DType type, bool tf32) {
  if (size_bytes(type) == 2) return cost::Math::half;
  return tf32 ? cost::Math::tf32 : cost::Math::f32;
}

/// FlashAttention takes no mask: then PyTorch falls back to its memory-efficient kernel, which is of the first
/// FlashAttention's kind.
cost::AttentionKernel kernel_for(const cost::Attention& a, cost::AttentionKernel asked) {
  using enum cost::AttentionKernel;
  if (a.element_bytes != 2) return unfused;
  return a.masked && (asked == fa2 || asked == fa3) ? fa1 : asked;
}

}  // namespace

std::size_t GpuKernels::KeyHash::operator()(const Key& key) const {
  std::uint64_t state = 0;
  for (const std::int64_t part : {key.a, key.b, key.c, key.d, key.e})
    state = (state ^ static_cast<std::uint64_t>(part)) * 0x9E3779B97F4A7C15ULL, state ^= state >> 32;
  return state;
}

GpuKernels::GpuKernels(const Cluster& cluster, const Software& software, int shard_ranks, int replicas)
    : cluster_(cluster),
      software_(software),
      profile_(cost::gpu_profile()),
      gpu_(rates_of(cluster.device)),
      shard_ranks_(shard_ranks),
      replicas_(replicas) {
  if (software.varies) compute_factor_ = cost::slowest_rank_factor(profile_.jitter_sigma.value, shard_ranks * replicas);
}

double GpuKernels::memory_seconds(double bytes) const {
  return bytes / (profile_.hbm_part.value * gpu_.hbm_bytes_per_s);
}

const Kernel& GpuKernels::product(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, DType type) {
  const auto [found, is_new] = products_.try_emplace(Key{batch, m, n, k, size_bytes(type)});
  if (is_new) {
    const cost::Product product{batch, m, n, k, math_of(type, software_.tf32), size_bytes(type)};
    const cost::GemmTime time = cost::gemm_time(profile_, gpu_, product, Running::in_step);
    const double seconds = std::max(time.memory_s, time.seconds / profile_.gemm.training_part.value);
    found->second = {seconds, time.memory_s, time.blocks};
  }
  return found->second;
}

const Kernel& GpuKernels::attention(const cost::Attention& a, bool backward) {
  const std::int64_t mask = a.window * 4 + a.masked * 2 + a.causal;
  const Key key{a.batch * a.heads, a.seq, a.head, a.element_bytes, mask * 2 + backward};
  const auto [found, is_new] = attentions_.try_emplace(key);
  if (is_new) {
    const auto kernel = kernel_for(a, software_.attention);
    const double bytes = static_cast<double>(a.batch * a.heads * a.seq * a.head * a.element_bytes) * (backward ? 8 : 4);
    found->second = {cost::attention_seconds(profile_, gpu_, a, kernel, backward, Running::in_step),
                     memory_seconds(bytes), a.batch * a.heads * ((a.seq + 127) / 128)};
  }
  return found->second;
}

Kernel GpuKernels::computes(double flops, DType type) const {
  const cost::Math math = math_of(type, software_.tf32);
  const double peak = math == cost::Math::half   ? gpu_.half_flops
                      : math == cost::Math::tf32 ? gpu_.tf32_flops
                                                 : gpu_.f32_flops;
  constexpr std::int64_t blocks_of_an_sm = 32;
  return {flops / peak, 0, blocks_of_an_sm * gpu_.sms};
}

Kernel GpuKernels::moves(double bytes) const {
  return {cost::memory_bound_seconds(profile_, gpu_, bytes, Running::in_step), memory_seconds(bytes)};
}

network::Group group_of(const Cluster& cluster, int shard_ranks, int replicas, model::OpKind kind) {
  const plan::Mesh mesh{.replicas = replicas, .inner = shard_ranks};
  const bool over_replicas = kind == model::OpKind::all_reduce && replicas > 1;
  const auto members = members_of(mesh, over_replicas ? plan::GroupKind::replica : plan::GroupKind::shard,
                                  std::min(cluster.gpus_per_node, mesh.world_size()));
  return {members.ranks, members.on_node, 1 + members.in_equal_groups / members.on_node};
}

const Transfer& GpuKernels::collective(model::OpKind kind, double bytes) {
  const auto [found, is_new] =
      transfers_.try_emplace(Key{static_cast<std::int64_t>(kind), static_cast<std::int64_t>(bytes)});
  if (is_new) {
    const auto cost = network::collective_time(cluster_, software_.nccl, kind, bytes,
                                               group_of(cluster_, shard_ranks_, replicas_, kind));
    const double seconds = std::max(cost.seconds, profile_.memory_start_s.value);
    const double moved = 2 * cost::passes(kind) * bytes;
    found->second = {seconds, std::min(1.0, memory_seconds(moved) / seconds), cost.channels};
  }
  return found->second;
}

}  // namespace foreshard::sim::torch
