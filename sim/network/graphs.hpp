#pragma once
#include "sim/cluster.hpp"

namespace foreshard::sim::network {

/// Who takes part in a collective.
struct Group {
  int ranks = 1;
  int ranks_per_node = 1;   ///< of this group
  int groups_per_node = 1;  ///< equal groups that run at once on every node, this one included, and share its network
};

/// The group as NCCL sees it, where a "node" is a link domain.
struct Layout {
  int ranks = 1, nodes = 1, ranks_per_node = 1;
};
Layout layout_of(const Cluster& cluster, const Group& group);

/// Paths that NCCL found: so many at once, each of this speed in GB/s.
struct Graph {
  int channels = 0;
  double intra = 0, inter = 0;
};

/// What NCCL thinks that a device's links to others carry together, in GB/s: NVLinks at 20 (V100, A100), 12 (sm_86),
/// 20.6 (H100) or 40.1 (B200) each, else PCIe at 12 per Gen3 x16. For AMD devices the part of their links that leads
/// to the ranks of the group, every pair having a link of its own.
double link_total(const Cluster& cluster, const Layout& layout);

/// The rings that NCCL finds (src/graph/search.cc): from a list of speeds the first with the most channels·speed;
/// channels are then split in two where they are fast. Across nodes a channel enters and leaves by one adapter, whose
/// speed PCIe limits too; adapters beyond one per device count as one faster adapter.
Graph ring_graph(const Cluster& cluster, const Layout& layout);

/// The ring graph's channels; between two nodes a tree sends each byte once instead of twice, so that its way inside a
/// node may be up to twice as fast as its adapters, as far as links carry it.
Graph tree_graph(const Cluster& cluster, const Layout& layout);

/// NVLink SHARP: a head on every rank, each using its own device's links twice and all others' once.
Graph nvls_graph(const Cluster& cluster, const Layout& layout);

/// Channels that a communicator has for this ring graph: twice as many, at most 64, and twice again on Hopper and later
/// across nodes where few are fast.
int launched_channels(const Cluster& cluster, const Layout& layout, const Graph& ring);

/// GB/s that the adapters of a link domain carry together.
double domain_network(const Cluster& cluster);

}  // namespace foreshard::sim::network
