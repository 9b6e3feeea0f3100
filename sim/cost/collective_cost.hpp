#pragma once
#include "sim/machine.hpp"

namespace foreshard::sim::cost {

/// Who takes part in a collective: members in all, and how many of them are on this node.
struct Members {
  int ranks = 1, on_node = 1;
  int in_equal_groups = 0;  ///< ranks of this node that do the same in groups beside this one, and share its network
  /// Part of the whole buffer that a member receives from other nodes, where members exchange directly.
  double part_from_elsewhere() const { return double(ranks - on_node) / ranks; }
};

/// The two parts of a collective's time, one after the other.
struct CollectiveTime {
  double on_node_s = 0;  ///< cores copy and add
  double network_s = 0;  ///< the network is filled
};

/// Straight lines between points in logarithms of bytes and seconds; constant below the smallest, proportional to the
/// bytes beyond the largest.
double table_seconds(const std::vector<CollectivePoint>& points, double bytes);

/// Which of the three collectives it is: sums of norms and losses are all-reduces, gather_norm is an all-gather.
OpKind measured_kind(OpKind kind);

/// How often a collective's bytes cross the network: all-reduces do twice.
double passes(OpKind kind);

/// Time from the last member's arrival to the last member's return, when nothing else runs; the members on a node share
/// its cores. `bytes` is the size of the whole buffer. Result in seconds.
///
/// Inside a node: the measured table of that many ranks, straight lines between points in logarithms of bytes and
/// seconds, proportional to the bytes beyond the largest. Rank counts without a table are extrapolated from the nearest
/// with one
/// ("extrapolated from …" in `source`): the smallest size's time grows with the number of ranks, as each must arrive;
/// the rest with the bytes that ranks move on their shared cores, ranks·min(1, cores/ranks)⁻¹·(P − 1)/P. Across nodes:
/// besides, log2(nodes) network latencies, and at the network's rate the bytes that enter the node: every rank of it
/// receives (ranks − on_node)/ranks of its whole buffer from elsewhere (twice for an all-reduce), as members exchange
/// directly; tests/net counts these bytes.
CollectiveTime collective_time(const Machine& machine, OpKind kind, double bytes, const Members& members,
                               std::string* source = nullptr);

/// Both parts, and no less than the shortest kernel.
double collective_seconds(const Machine& machine, OpKind kind, double bytes, const Members& members,
                          std::string* source = nullptr);

}  // namespace foreshard::sim::cost
