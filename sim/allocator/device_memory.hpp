#pragma once
#include <vector>

#include "sim/allocator/settings.hpp"
#include "sim/network/graphs.hpp"
#include "sim/network/tuning.hpp"

namespace foreshard::sim::allocator {

/// What a process runs on: it decides what is loaded onto the device.
struct Software {
  network::Version nccl;     ///< or the release of NCCL that RCCL follows
  bool lazy_loading = true;  ///< of CUDA modules: by default since CUDA 12.2, PyTorch 2.0; else all at once
};

/// A process group: who is in it, and whether it reduces with all-reduce (replicas of a hybrid do) besides gathering
/// and reduce-scattering.
struct ProcessGroup {
  network::Group group;
  bool all_reduces = false;
};

/// Device memory that one communicator takes on its most connected rank.
struct CommunicatorMemory {
  Bytes connections = 0;  ///< buffers to and from its neighbours in rings and trees
  Bytes multicast = 0;    ///< NVLink SHARP
  Quantity rest;          ///< what else was measured for each
  Bytes total() const { return connections + multicast + static_cast<Bytes>(rest.value); }
};

/// The CUDA (HIP) context of a PyTorch process.
Quantity context_bytes(const Device& device, const Software& software);

/// What the first communicator of a process brings with it: its kernels and their local memory.
Quantity first_communicator_bytes(const Device& device, const Software& software);

enum class TreePlace { inner, end };

/// Every channel has a sending and a receiving end to each neighbour, rounded to 2 MiB: in a ring one of each, in a
/// tree one of each to both neighbours, which a pair of ranks shares with its ring. An end holds the buffers of the
/// three protocols (LL 524 288 B, LL128 4 915 200 B, simple 4 MiB, on Arm hosts 1 MiB); the receiver has them, but on
/// A100 with NVLink the sender holds the simple one; across nodes both ends have all (the sender's LL is on the host).
/// Before NCCL 2.22 all algorithms are connected at once, then those that are used. A tree's `ends` have one neighbour
/// there. One rank: nothing.
/// Source: NVIDIA/nccl src/transport/p2p.cc, net.cc, nvls.cc, src/init.cc; nccl#1685 shows ends of 10 485 760 and
/// 2 097 152 B on H100, and logs of NVLS 268 435 456 B for 8 ranks.
/// Assumed: devices reach each other (P2P), adapters reach devices (GPUDirect).
CommunicatorMemory communicator_memory(const Cluster& cluster, const Software& software, const ProcessGroup& group,
                                       TreePlace place = TreePlace::inner);

/// cuBLAS's workspace, which PyTorch takes from its allocator for each handle (the thread of forward, that of backward)
/// and stream. Source: pytorch/pytorch aten/src/ATen/cuda/CublasHandlePool.cpp.
Bytes blas_workspace_bytes(const Device& device);
/// cuBLASLt's, for products with a bias. Source: aten/src/ATen/cuda/CUDABlas.cpp.
Bytes blaslt_workspace_bytes(const Device& device);

/// What a device holds outside the allocator.
struct OutsideMemory {
  Quantity context, first_communicator;
  std::vector<CommunicatorMemory> communicators;
  Bytes total() const;
};
OutsideMemory outside_memory(const Cluster& cluster, const Software& software, const std::vector<ProcessGroup>& groups);

}  // namespace foreshard::sim::allocator
