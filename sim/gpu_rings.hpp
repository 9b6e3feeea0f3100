#pragma once
#include "sim/cluster.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/gpu_profile.hpp"

namespace foreshard::sim {

/// What the time of a kernel depends on.
cost::GpuRates rates_of(const Device& device);

/// Between a GPU and its host, or to another GPU without links, one direction: 12 GB/s for 16 lanes of generation 3,
/// twice as much for each further one (NVIDIA/nccl, src/graph/topo.h, scaled). Bytes per second.
double pcie_bytes_per_s(const Device& device);

/// A collective on GPUs, when nothing else runs.
struct GpuCollective {
  double seconds = 0;
  double transfer_s = 0;  ///< of them, the links or the network are filled
  int channels = 0;       ///< SMs that it holds
};

/// Collectives as flat rings over all members: latency by steps, the bytes that pass the narrowest link, and what the
/// fabric adds (cluster.hpp).
///
///   8.4 us + steps·3.4 us inside a node, 14 us for a step to another node (NCCL 2.30, src/graph/tuning.cc: ring,
///   protocol Simple), and bytes·(n − 1)/n / rate, all-reduces twice; rate = 0.8 of the links' (NCCL's ring graphs
///   reach 360 of 450 GB/s on H100 and 240 of 300 on A100), between nodes no more than 0.9 of the network, which equal
///   groups of the node share. Channels: 24 inside a node, 16 between nodes.
GpuCollective ring_collective(const Cluster& cluster, OpKind kind, double bytes, const cost::Members& members);

}  // namespace foreshard::sim
