#pragma once
#include "sim/cost/gpu_profile.hpp"
#include "sim/device.hpp"

namespace foreshard::sim {

/// What the time of a kernel depends on.
cost::GpuRates rates_of(const Device& device);

/// Between a GPU and its host, or to another GPU without links, one direction: 12 GB/s for 16 lanes of generation 3,
/// twice as much for each further one (NVIDIA/nccl, src/graph/topo.h, scaled). Bytes per second.
double pcie_bytes_per_s(const Device& device);

}  // namespace foreshard::sim
