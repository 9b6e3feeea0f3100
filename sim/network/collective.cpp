#include "sim/network/collective.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace foreshard::sim::network {
namespace {

using model::OpKind;

double sqrt_coefficient(const Fabric& fabric, OpKind kind) {
  if (kind == OpKind::all_gather) return fabric.all_gather_s_per_sqrt_byte.value;
  if (kind == OpKind::reduce_scatter) return fabric.reduce_scatter_s_per_sqrt_byte.value;
  return fabric.all_reduce_s_per_sqrt_byte.value;
}

/// Part of the speed that a group keeps beside equal ones.
double share(const Cluster& cluster, const Group& group, const Layout& layout, double bus) {
  if (layout.nodes == 1 || group.groups_per_node == 1) return 1;
  return std::min(1.0, domain_network(cluster) / (group.groups_per_node * bus));
}

/// Bytes that a thread must find for NCCL to keep it (src/enqueue.cc).
double bytes_per_thread(const Estimate& choice, int ranks) {
  if (choice.protocol == Protocol::simple) return 64;
  const bool ring_ll = choice.protocol == Protocol::ll && choice.algorithm == Algorithm::ring;
  return 8.0 * (ring_ll ? ranks : 1);
}

int nvls_channels(const Cluster& cluster, const Layout& layout) {
  if (cluster.device.compute_capability() < 100) return 16;
  return layout.nodes == 1 ? 24 : 32;
}

int channels_of(const Cluster& cluster, const Layout& layout, const Estimate& choice, double bytes) {
  if (choice.algorithm == Algorithm::nvls || choice.algorithm == Algorithm::nvls_tree)
    return nvls_channels(cluster, layout);
  const int most = launched_channels(cluster, layout, ring_graph(cluster, layout));
  const double threads = choice.protocol == Protocol::ll128 ? 640 : 512;
  const double needed = std::floor(bytes / (threads * bytes_per_thread(choice, layout.ranks)));
  return std::clamp(static_cast<int>(std::min(needed, 64.0)), 1, most);
}

}  // namespace

CollectiveCost collective_time(const Cluster& cluster, const Version& version, OpKind kind, double bytes,
                               const Group& group) {
  FORESHARD_EXPECT(group.ranks >= 1 && group.ranks_per_node >= 1, "a group has ranks");
  if (group.ranks == 1 || bytes <= 0) return {};
  const Layout layout = layout_of(cluster, group);
  const Fabric& fabric = layout.nodes == 1 ? cluster.intra : cluster.fabric;
  const Estimate taken = choose(cluster, tuning_of(version), kind, bytes, layout);
  Estimate choice = estimate(cluster, tuning_of({}), kind, bytes, layout, taken.algorithm, taken.protocol);
  const int channels = channels_of(cluster, layout, choice, bytes);
  choice.bandwidth *= fabric.efficiency.value * share(cluster, group, layout, choice.bus_per_node);
  const double added_s = fabric.floor_s.value + sqrt_coefficient(fabric, kind) * std::sqrt(bytes);
  return {choice.microseconds(bytes) * 1e-6 + added_s, choice.algorithm, choice.protocol, channels};
}

}  // namespace foreshard::sim::network
