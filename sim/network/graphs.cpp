#include "sim/network/graphs.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

namespace foreshard::sim::network {
namespace {

constexpr int max_search_channels = 32, max_channels = 64;
constexpr double unlimited = 5000;

using Speeds = std::vector<double>;

const Speeds& intra_speeds(int capability) {
  static const Speeds old{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
  static const Speeds hopper{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
  static const Speeds blackwell{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
  return capability >= 100 ? blackwell : capability >= 90 ? hopper : old;
}

const Speeds& inter_speeds(int capability) {
  static const Speeds old{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
  static const Speeds hopper{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
  static const Speeds blackwell{96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
  return capability >= 100 ? blackwell : capability >= 90 ? hopper : old;
}

double nvlink_speed(int capability) {
  if (capability >= 100) return 40.1;
  if (capability >= 90) return 20.6;
  return capability == 86 ? 12 : 20;
}

double pcie_speed(const Device& device) { return 12 * std::exp2(device.pcie_generation - 3) * device.pcie_lanes / 16; }

/// Adapters of a node that a group's ranks reach, and the speed of each.
struct Adapters {
  int count = 1;
  double speed = 0;
};
Adapters adapters_of(const Cluster& cluster, int ranks_per_node) {
  const double per_gpu = double(cluster.nics) / cluster.gpus_per_node;
  const int count = std::max(1, static_cast<int>(std::lround(std::min(per_gpu, 1.0) * ranks_per_node)));
  const double rate = cluster.nic_bytes_per_s.value / 1e9 * std::max(per_gpu, 1.0);
  return {count, std::min(rate, pcie_speed(cluster.device))};
}

int fitting(double total, double speed) { return static_cast<int>(std::floor(total / speed + 1e-9)); }

Graph fastest(const Speeds& speeds, auto channels_at) {
  Graph best;
  for (const double speed : speeds)
    if (const int channels = std::min(channels_at(speed), max_search_channels);
        channels * speed > best.channels * best.intra)
      best = {channels, speed, speed};
  return best;
}

Graph split_fast_channels(Graph graph, int capability) {
  const bool fast = graph.intra >= 25 && (capability < 90 || graph.intra >= 50 || graph.channels <= 4);
  if (fast && 2 * graph.channels <= max_search_channels) return {2 * graph.channels, graph.intra / 2, graph.inter / 2};
  return graph;
}

int hosts_of_domain(const Cluster& cluster) { return std::max(1, cluster.link_domain / cluster.gpus_per_node); }

/// One ring at what the slowest way carries: AMD devices, and links too slow for the lists.
Graph single_ring(double speed) { return {1, speed, speed}; }

}  // namespace

Layout layout_of(const Cluster& cluster, const Group& group) {
  const int per_node = std::min(group.ranks, group.ranks_per_node * hosts_of_domain(cluster));
  return {group.ranks, (group.ranks + per_node - 1) / per_node, per_node};
}

double domain_network(const Cluster& cluster) {
  return hosts_of_domain(cluster) * cluster.nics * cluster.nic_bytes_per_s.value / 1e9;
}

double link_total(const Cluster& cluster, const Layout& layout) {
  const Device& device = cluster.device;
  if (layout.ranks_per_node == 1) return unlimited;
  if (device.compute_capability() == 0 && device.link_bytes_per_s.value > 0)
    return device.link_bytes_per_s.value / 1e9 * std::min(1.0, (layout.ranks_per_node - 1) / 7.0);
  return device.nvlinks > 0 ? device.nvlinks * nvlink_speed(device.compute_capability()) : pcie_speed(device);
}

Graph ring_graph(const Cluster& cluster, const Layout& layout) {
  const int capability = cluster.device.compute_capability();
  const double total = link_total(cluster, layout);
  if (layout.nodes == 1) {
    const Graph found = fastest(intra_speeds(capability), [&](double speed) { return fitting(total, speed); });
    return found.channels == 0 || capability == 0 ? single_ring(total) : split_fast_channels(found, capability);
  }
  const Adapters adapters = adapters_of(cluster, layout.ranks_per_node);
  const Graph found = fastest(inter_speeds(capability), [&](double speed) {
    return std::min(fitting(total, speed), adapters.count * fitting(adapters.speed, speed));
  });
  return found.channels == 0 ? single_ring(std::min(total, adapters.speed)) : split_fast_channels(found, capability);
}

Graph tree_graph(const Cluster& cluster, const Layout& layout) {
  Graph graph = ring_graph(cluster, layout);
  if (layout.nodes != 2 || layout.ranks_per_node == 1) return graph;
  const double limit = std::min(2 * graph.inter, link_total(cluster, layout) / graph.channels);
  for (const double speed : inter_speeds(cluster.device.compute_capability()))
    if (speed <= limit) return graph.intra = std::max(graph.intra, speed), graph;
  return graph;
}

Graph nvls_graph(const Cluster& cluster, const Layout& layout) {
  const int capability = cluster.device.compute_capability(), heads = layout.ranks_per_node;
  if (capability < 90 || cluster.device.nvlinks == 0 || heads < 2) return {};
  const double adapter = adapters_of(cluster, heads).speed, share = link_total(cluster, layout) / (heads + 1);
  const bool across = layout.nodes > 1;
  const Speeds& speeds = across ? inter_speeds(capability) : intra_speeds(capability);
  const auto at_most = [&](double limit) {
    const auto found = std::ranges::find_if(speeds, [&](double speed) { return speed <= limit + 1e-9; });
    return found == speeds.end() ? 0 : *found;
  };
  return {heads, at_most(across ? std::min(share, adapter) : share), across ? at_most(adapter) : speeds.front()};
}

int launched_channels(const Cluster& cluster, const Layout& layout, const Graph& ring) {
  const int twice = std::min(2 * ring.channels, max_channels);
  const bool again = cluster.device.compute_capability() >= 90 && layout.nodes > 1 && ring.intra > 45 && twice < 16;
  return again ? 2 * twice : twice;
}

}  // namespace foreshard::sim::network
