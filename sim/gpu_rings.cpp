#include "sim/gpu_rings.hpp"

#include <algorithm>
#include <cmath>

namespace foreshard::sim {
namespace {

constexpr double base_s = 8.4e-6, hop_s = 3.4e-6, network_hop_s = 14e-6;
constexpr double link_part = 0.8, network_part = 0.9;
constexpr int node_channels = 24, network_channels = 16;

bool in_one_node(const cost::Members& members) { return members.ranks == members.on_node; }

double ring_bytes_per_s(const Cluster& cluster, const cost::Members& members) {
  const Device& device = cluster.device;
  const double links = device.link_bytes_per_s.value;
  const double inside = link_part * (links > 0 ? links : pcie_bytes_per_s(device));
  if (in_one_node(members)) return inside;
  const double groups = 1 + double(members.in_equal_groups) / members.on_node;
  const double between = network_part * cluster.nics * cluster.nic_bytes_per_s.value / groups;
  return members.on_node > 1 ? std::min(inside, between) : between;
}

double ring_latency_s(const cost::Members& members, double passes) {
  const int nodes = (members.ranks + members.on_node - 1) / members.on_node;
  const int network_hops = nodes > 1 ? nodes - 1 : 0;
  return base_s + passes * ((members.ranks - 1 - network_hops) * hop_s + network_hops * network_hop_s);
}

double fabric_s(const Fabric& fabric, OpKind kind, double bytes) {
  const Quantity& coefficient = kind == OpKind::all_gather       ? fabric.all_gather_s_per_sqrt_byte
                                : kind == OpKind::reduce_scatter ? fabric.reduce_scatter_s_per_sqrt_byte
                                                                 : fabric.all_reduce_s_per_sqrt_byte;
  return fabric.floor_s.value + coefficient.value * std::sqrt(bytes);
}

}  // namespace

cost::GpuRates rates_of(const Device& device) {
  return {.name = device.name,
          .arch = device.architecture,
          .half_flops = std::max(device.bf16_flops.value, device.fp16_flops.value),
          .tf32_flops = device.tf32_flops.value,
          .f32_flops = device.fp32_flops.value,
          .sms = device.multiprocessors,
          .hbm_bytes_per_s = device.memory_bytes_per_s.value,
          .l2_bytes = device.l2_bytes.value};
}

double pcie_bytes_per_s(const Device& device) {
  return 12e9 * std::exp2(device.pcie_generation - 3) * device.pcie_lanes / 16;
}

GpuCollective ring_collective(const Cluster& cluster, OpKind kind, double bytes, const cost::Members& members) {
  if (members.ranks == 1) return {};
  const double passes = cost::passes(kind);
  const double moved = passes * bytes * (members.ranks - 1) / members.ranks;
  const Fabric& fabric = in_one_node(members) ? cluster.intra : cluster.fabric;
  GpuCollective result{.transfer_s = moved / (ring_bytes_per_s(cluster, members) * fabric.efficiency.value)};
  result.seconds = ring_latency_s(members, passes) + result.transfer_s + fabric_s(fabric, kind, bytes);
  result.channels = in_one_node(members) ? node_channels : network_channels;
  return result;
}

}  // namespace foreshard::sim
