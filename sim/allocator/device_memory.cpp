#include "sim/allocator/device_memory.hpp"

#include <algorithm>
#include <cmath>

#include "sim/allocator/rounding.hpp"

namespace foreshard::sim::allocator {
namespace {

constexpr Bytes ll = 524'288, ll128 = 4'915'200, mailbox = 4096, granule = 2 * mib;
constexpr network::Version connects_on_use{2, 22, 0};

bool is_amd(const Device& device) { return device.compute_capability() == 0; }

double gibibytes(double count) { return count * static_cast<double>(gib); }
double mebibytes(double count) { return count * static_cast<double>(mib); }

/// The ends of one channel's connection.
struct Ends {
  Bytes send = 0, receive = 0;
  Bytes both() const { return send + receive; }
};

Bytes simple_buffer(const Cluster& cluster) { return cluster.cpu == "arm" ? mib : 4 * mib; }

Ends ends_in_node(const Cluster& cluster) {
  const bool reads = cluster.device.compute_capability() == 80 && cluster.device.nvlinks > 0;
  const Bytes simple = simple_buffer(cluster);
  return {round_up(mailbox + (reads ? simple : 0), granule),
          round_up(mailbox + ll + ll128 + (reads ? 0 : simple), granule)};
}

Ends ends_across(const Cluster& cluster) {
  return {round_up(ll128 + simple_buffer(cluster), granule), round_up(ll + ll128 + simple_buffer(cluster), granule)};
}

bool uses_trees(const Software& software, const ProcessGroup& group) {
  return group.all_reduces || software.nccl < connects_on_use;
}

/// Of a ring that leaves the node every channel does so by another rank.
Bytes ring_bytes(const Cluster& cluster, const network::Layout& layout, int channels) {
  const Bytes inside = ends_in_node(cluster).both(), across = ends_across(cluster).both();
  if (layout.nodes == 1) return channels * inside;
  const Bytes leaving = (channels + layout.ranks_per_node - 1) / layout.ranks_per_node;
  return leaving * across + (channels - leaving) * inside;
}

/// What a tree adds to a ring in the same order: the way back to one neighbour, or both.
Bytes tree_bytes(const Cluster& cluster, const network::Layout& layout, int channels, TreePlace place) {
  if (layout.ranks < 3) return 0;
  const Ends ends = layout.ranks_per_node > 1 ? ends_in_node(cluster) : ends_across(cluster);
  return channels * (place == TreePlace::inner ? ends.both() : ends.receive);
}

/// Two buffers a channel and rank of the node, of 1 MiB (4 MiB before 2.19).
Bytes multicast_bytes(const Cluster& cluster, const Software& software, const ProcessGroup& group,
                      const network::Layout& layout) {
  const int capability = cluster.device.compute_capability();
  const bool possible = capability >= 90 && cluster.device.nvlinks > 0 && layout.ranks_per_node > 1 &&
                        software.nccl >= network::Version{2, 17, 0};
  if (!possible || (layout.nodes > 1 && !uses_trees(software, group))) return 0;
  const int channels = capability < 100 ? 16 : layout.nodes == 1 ? 24 : 32;
  const Bytes buffer = software.nccl >= network::Version{2, 19, 0} ? mib : 4 * mib;
  return Bytes{2} * channels * layout.ranks_per_node * buffer;
}

}  // namespace

Quantity context_bytes(const Device& device, const Software& software) {
  if (is_amd(device)) return {gibibytes(0.5), "assumed"};
  const std::string where = device.compute_capability() == 80 ? "" : ", assumed for this device too";
  if (software.lazy_loading)
    return {gibibytes(0.47), "published: A100, PyTorch 2.1.1, modules loaded lazily (stas00/ml-engineering)" + where};
  if (software.nccl < network::Version{2, 11, 0})
    return {gibibytes(1.78), "published: A100, PyTorch 1.10.2 (stas00/ml-engineering)" + where};
  return {gibibytes(0.92), "published: A100, PyTorch 2.1.1, modules loaded at once (stas00/ml-engineering)" + where};
}

Quantity first_communicator_bytes(const Device& device, const Software& software) {
  if (is_amd(device)) return {gibibytes(1), "published: MI250X, LUMI-AI-Guide#111, about 1 GiB besides each group's"};
  if (software.nccl < connects_on_use)
    return {mebibytes(941), "published: a first barrier takes 1.45 GiB (stas00/ml-engineering), 544 MiB for its group"};
  return {mebibytes(274), "published: 1.06 GB before the first connection (nccl#1685), less context and group"};
}

CommunicatorMemory communicator_memory(const Cluster& cluster, const Software& software, const ProcessGroup& group,
                                       TreePlace place) {
  if (group.group.ranks < 2) return {};
  if (is_amd(cluster.device)) return {0, 0, {gibibytes(0.65), "published: MI250X, LUMI-AI-Guide#111"}};
  const network::Layout layout = network::layout_of(cluster, group.group);
  const int channels = network::launched_channels(cluster, layout, network::ring_graph(cluster, layout));
  CommunicatorMemory memory;
  memory.connections = ring_bytes(cluster, layout, channels);
  if (uses_trees(software, group)) memory.connections += tree_bytes(cluster, layout, channels, place);
  memory.multicast = multicast_bytes(cluster, software, group, layout);
  memory.rest = {mebibytes(256), "published: nccl#964, 544 and 688 MiB on A100, less 24 channels' buffers"};
  return memory;
}

Bytes blas_workspace_bytes(const Device& device) {
  if (is_amd(device))
    return device.architecture.starts_with("gfx94") || device.architecture.starts_with("gfx95") ? 128 * mib : 32 * mib;
  return device.compute_capability() >= 90 && device.compute_capability() < 120 ? 32 * mib : 8'519'680;
}

Bytes blaslt_workspace_bytes(const Device& device) { return is_amd(device) ? 76 * mib : mib; }

Bytes OutsideMemory::total() const {
  Bytes sum = static_cast<Bytes>(context.value + first_communicator.value);
  for (const CommunicatorMemory& communicator : communicators) sum += communicator.total();
  return sum;
}

OutsideMemory outside_memory(const Cluster& cluster, const Software& software,
                             const std::vector<ProcessGroup>& groups) {
  OutsideMemory memory{context_bytes(cluster.device, software), {0, "no communicator"}, {}};
  for (const ProcessGroup& group : groups)
    if (group.group.ranks > 1) memory.communicators.push_back(communicator_memory(cluster, software, group));
  if (!memory.communicators.empty()) memory.first_communicator = first_communicator_bytes(cluster.device, software);
  return memory;
}

}  // namespace foreshard::sim::allocator
