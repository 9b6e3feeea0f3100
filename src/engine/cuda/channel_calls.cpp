#include "engine/cuda/channel_calls.hpp"

namespace foreshard::engine::cuda {
namespace {

using comm::nccl::Channel;

void move(std::int64_t size_bytes, std::byte* from, std::byte* to, const DeviceQueue& queue) {
  if (from != to) queue.kernels.copy(from, to, size_bytes);
}

/// Behind a sum that lies at `from`.
void leave(const Sum& sum, std::byte* from, std::byte* to, const DeviceQueue& queue) {
  queue.kernels.cast(sum.count, sum.accumulate, {from, sum.travels}, {to, sum.stays});
}

}  // namespace

void all_gather(const Channel& channel, std::int64_t count, DType dtype, std::byte* from, std::byte* to,
                DeviceQueue queue) {
  if (channel.size() > 1) return channel.all_gather(from, to, count, dtype, queue.stream.get());
  move(count * size_bytes(dtype), from, to, queue);
}

void reduce_scatter(const Channel& channel, const Sum& sum, std::byte* from, std::byte* to, DeviceQueue queue) {
  std::byte* own = from + channel.index() * sum.count * size_bytes(sum.travels);
  if (channel.size() > 1)
    channel.reduce_scatter(from, sum.direct() ? to : own, sum.count, sum.travels, queue.stream.get());
  else if (sum.direct())
    move(sum.count * size_bytes(sum.travels), own, to, queue);
  if (!sum.direct()) leave(sum, own, to, queue);
}

void all_reduce(const Channel& channel, const Sum& sum, std::byte* from, std::byte* to, DeviceQueue queue) {
  if (channel.size() > 1)
    channel.all_reduce(from, sum.direct() ? to : from, sum.count, sum.travels, queue.stream.get());
  else if (sum.direct())
    move(sum.count * size_bytes(sum.travels), from, to, queue);
  if (!sum.direct()) leave(sum, from, to, queue);
}

}  // namespace foreshard::engine::cuda
