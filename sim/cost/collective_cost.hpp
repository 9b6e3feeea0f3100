#pragma once
#include "sim/machine.hpp"

namespace foreshard::sim::cost {

/// Who takes part in a collective: members in all, and how many of them are on this node.
struct Members {
  int ranks = 1, on_node = 1;
};

/// Time from the last member's arrival to the last member's return, when nothing else runs; the members on a node share
/// its cores. `bytes` is the size of the whole buffer. Result in seconds.
///
/// Inside a node: the measured table of that many ranks, straight lines between points in logarithms of bytes and
/// seconds, proportional to the bytes beyond the largest. Rank counts without a table are extrapolated from the nearest
/// with one
/// ("extrapolated from …" in `source`): the smallest size's time grows with the number of ranks, as each must arrive;
/// the rest with the bytes that ranks move on their shared cores, ranks·min(1, cores/ranks)⁻¹·(P − 1)/P. Across nodes:
/// besides, log2(nodes) network latencies, and the bytes that enter each node once, (nodes − 1)/nodes of the whole
/// (twice for an all-reduce), at the network's rate; the ring and tree bounds of Thakur, Rabenseifner, Gropp, IJHPCA
/// 2005.
double collective_seconds(const Machine& machine, OpKind kind, double bytes, const Members& members,
                          std::string* source = nullptr);

}  // namespace foreshard::sim::cost
