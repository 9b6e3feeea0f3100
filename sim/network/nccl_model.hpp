#pragma once
#include "model/operator.hpp"
#include "sim/network/graphs.hpp"
#include "sim/network/tuning.hpp"

namespace foreshard::sim::network {

/// NCCL's own estimate for one way to carry out a collective: latency_us + bytes / bandwidth. Bandwidth 0: not
/// available. GB/s of the whole buffer.
struct Estimate {
  Algorithm algorithm{};
  Protocol protocol{};
  double latency_us = 0, bandwidth = 0;
  double bus_per_node = 0;  ///< GB/s through a node's adapters while it runs
  double microseconds(double bytes) const { return latency_us + bytes / (1000 * bandwidth); }
};

/// One algorithm and protocol. `kind` is all_gather, reduce_scatter or all_reduce; `bytes` are those of the whole
/// buffer. Source: NVIDIA/nccl src/graph/tuning.cc. CollNet is left out (needs SHARP in the network).
Estimate estimate(const Cluster& cluster, const Tuning& tuning, model::OpKind kind, double bytes, const Layout& layout,
                  Algorithm algorithm, Protocol protocol);

/// The one that NCCL takes: the fastest by its own estimate.
Estimate choose(const Cluster& cluster, const Tuning& tuning, model::OpKind kind, double bytes, const Layout& layout);

}  // namespace foreshard::sim::network
