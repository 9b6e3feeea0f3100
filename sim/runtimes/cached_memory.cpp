#include "sim/runtimes/cached_memory.hpp"

#include <algorithm>
#include <cmath>

namespace foreshard::sim::torch {

Nanoseconds passed_by(const Timeline& time, Recorded recorded) {
  Nanoseconds passed = 0;
  for (std::size_t i = 0; i < stream_count; ++i)
    if (const auto stream = static_cast<Stream>(i); recorded.has(stream))
      passed = std::max(passed, time.end_of(stream));
  for (std::size_t i = 0; i < communicator_count; ++i)
    if (const auto one = static_cast<Communicator>(i); recorded.has(one)) passed = std::max(passed, time.end_of(one));
  return passed;
}

CachedMemory::CachedMemory(allocator::CachingAllocator& allocator, Gpu& gpu, const Device& device)
    : allocator_(allocator), gpu_(gpu) {
  for (int thread = 0; thread < 2; ++thread) allocate(allocator::blas_workspace_bytes(device));
  allocate(allocator::blaslt_workspace_bytes(device));
}

void* CachedMemory::allocate(std::int64_t bytes) {
  const Timeline& time = gpu_.time();
  const auto stream = static_cast<allocator::Stream>(gpu_.current());
  const allocator::Allocation given = allocator_.allocate(bytes, stream, time.host(), time.end_of_all());
  if (given.out_of_memory) throw DeviceIsFull{allocator_.failure()};
  gpu_.block(given.host_at);
  return given.block;
}

void CachedMemory::free(void* block, Recorded recorded) {
  auto* given = static_cast<allocator::Block*>(block);
  if (recorded.none()) return allocator_.free(given);
  allocator_.free(given, passed_by(gpu_.time(), recorded));
}

allocator::DriverCost driver_cost(int ranks) {
  allocator::DriverCost cost;
  if (ranks > 1) cost.free_ns_per_gib = std::llround(1e9 * cost::gpu_profile().retry_s_per_gib.value);
  return cost;
}

Regathers regathers_of(const TorchRun& run) {
  const bool regathers = run.runtime == Runtime::fsdp2 && run.wrap.reshard_to > 0;
  return regathers ? Regathers{run.wrap.reshard_to, unit_shapes(run.model).size() - 1} : Regathers{};
}

allocator::OutsideMemory outside_memory(const Cluster& cluster, const Software& software, int shard_ranks, int replicas,
                                        const Regathers& regathers) {
  const auto group = [&](model::OpKind kind) { return group_of(cluster, shard_ranks, replicas, kind); };
  std::vector<allocator::ProcessGroup> groups{{group(model::OpKind::all_gather), false}};
  if (replicas > 1) groups.push_back({group(model::OpKind::all_reduce), true});
  for (std::size_t unit = 0; unit < regathers.units; ++unit)
    groups.push_back({group_of(cluster, regathers.ranks, 1, model::OpKind::all_gather), false});
  return allocator::outside_memory(cluster, {.nccl = software.nccl, .lazy_loading = software.lazy_loading}, groups);
}

}  // namespace foreshard::sim::torch
