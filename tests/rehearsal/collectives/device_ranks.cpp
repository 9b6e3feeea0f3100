#include "rehearsal/collectives/device_ranks.hpp"

#include <thread>

#include "engine/cuda/device.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::comm::testing {

using kernels::cuda::check;

DeviceGroup::DeviceGroup(nccl::Channel channel, const Communicator& host, const Mirror& mirror)
    : channel_(std::move(channel)),
      host_(host),
      mirror_(mirror),
      kernels_(kernels::cuda::make({.stream = stream_.get()})) {}

void DeviceGroup::all_gather(const void* shard, void* whole, std::int64_t count, DType dtype) {
  const std::int64_t bytes = count * size_bytes(dtype);
  run({shard, bytes}, {whole, bytes * size()},
      [&](std::byte* from, std::byte* to) { engine::cuda::all_gather(channel_, count, dtype, from, to, queue()); });
}

void DeviceGroup::reduce_scatter(const void* whole, void* shard, std::int64_t count, SumTypes types, bool accumulate) {
  run({whole, size() * count * size_bytes(types.from)}, {shard, count * size_bytes(types.to)},
      [&](std::byte* from, std::byte* to) {
        engine::cuda::reduce_scatter(channel_, {count, types.from, types.to, accumulate}, from, to, queue());
      });
}

void DeviceGroup::all_reduce(const void* x, void* sum, std::int64_t count, SumTypes types, bool accumulate) {
  run({x, count * size_bytes(types.from)}, {sum, count * size_bytes(types.to)}, [&](std::byte* from, std::byte* to) {
    engine::cuda::all_reduce(channel_, {count, types.from, types.to, accumulate}, from, to, queue());
  });
}

void DeviceGroup::run(Operand from, Operand to, const std::function<void(std::byte*, std::byte*)>& call) {
  bring(to);
  bring(from);
  call(mirror_.on_device(from.at), mirror_.on_device(to.at));
  await();
  fetch(to);
}

void DeviceGroup::bring(Operand operand) {
  check(cudaMemcpy(mirror_.on_device(operand.at), operand.at, static_cast<std::size_t>(operand.bytes),
                   cudaMemcpyHostToDevice),
        "cudaMemcpy");
}

void DeviceGroup::fetch(Operand operand) {
  check(cudaMemcpy(const_cast<void*>(operand.at), mirror_.on_device(operand.at),
                   static_cast<std::size_t>(operand.bytes), cudaMemcpyDeviceToHost),
        "cudaMemcpy");
}

/// As the engine waits: a rank that failed elsewhere ends this one too, whose collective never would.
void DeviceGroup::await() {
  try {
    while (!stream_.idle()) {
      host_.expect_running("a collective on devices");
      channel_.expect_sound();
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  } catch (...) {
    channel_.abort();
    throw;
  }
}

DeviceRanks::DeviceRanks(Communicator& host, nccl::Deadline deadline) : host_(host), deadline_(deadline) {
  engine::cuda::choose_device(host_);
  world_ = nccl::connect(host_, deadline_);
}

std::span<std::byte> DeviceRanks::arena(std::int64_t size_bytes) {
  const std::span<std::byte> host = host_.arena(size_bytes);
  mirror_.emplace(host);
  return host;
}

std::unique_ptr<Group> DeviceRanks::group(std::span<const int> members) {
  return std::make_unique<DeviceGroup>(nccl::split(world_, members, rank(), deadline_), host_, *mirror_);
}

}  // namespace foreshard::comm::testing
