#pragma once
#include <cstddef>
#include <cstdint>

#include "comm/nccl/channel.hpp"
#include "engine/cuda/stream.hpp"
#include "kernels/cuda/backend.hpp"

/// What comm::Group does, on a device: queued, with buffers in device memory. A channel of one member moves nothing.
/// Sums are made in the type that travels, in an order that NCCL chooses, the same on all ranks and each time; what is
/// to be added to, or left in another type, is cast by a kernel behind, of f32, bf16 and f16 alone.
namespace foreshard::engine::cuda {

/// Where a call is queued.
struct DeviceQueue {
  const Stream& stream;
  kernels::cuda::Kernels& kernels;  ///< of that stream
};

struct Sum {
  std::int64_t count = 0;  ///< elements that stay on this rank
  DType travels = DType::f32, stays = DType::f32;
  bool accumulate = false;
  bool direct() const { return travels == stays && !accumulate; }
};

/// to[i·count, (i + 1)·count) = member i's `from`, which may be its part of `to`.
void all_gather(const comm::nccl::Channel& channel, std::int64_t count, DType dtype, std::byte* from, std::byte* to,
                DeviceQueue queue);

/// to = (accumulate ? to : 0) + Σ over members of their part `index` of `from`, which may be overwritten.
void reduce_scatter(const comm::nccl::Channel& channel, const Sum& sum, std::byte* from, std::byte* to,
                    DeviceQueue queue);

/// to = (accumulate ? to : 0) + Σ over members of their `from`, which may be overwritten, and may be `to` if the sum is
/// direct.
void all_reduce(const comm::nccl::Channel& channel, const Sum& sum, std::byte* from, std::byte* to, DeviceQueue queue);

}  // namespace foreshard::engine::cuda
