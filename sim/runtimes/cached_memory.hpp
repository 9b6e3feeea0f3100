#pragma once
#include "sim/allocator/caching_allocator.hpp"
#include "sim/allocator/device_memory.hpp"
#include "sim/runtimes/gpu.hpp"
#include "sim/runtimes/live_bytes.hpp"
#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {

/// Thrown out of a step that asks for more than its device has.
struct DeviceIsFull {
  allocator::OutOfMemory why;
};

/// When all streams and communicators that a storage was recorded on will have done what is issued to them by now.
Nanoseconds passed_by(const Timeline& time, Recorded recorded);

/// Storages of a run in PyTorch's caching allocator, a pool for each stream, at the time at which the host asks. The
/// host stands still where the allocator waits for the device. A storage that other streams were recorded on stays
/// active until they have passed what was issued to them when it died, and an allocation has seen that.
class CachedMemory final : public Place {
 public:
  /// cuBLAS's workspaces, for the threads of forward and of backward, are allocated at once. Both must outlive this.
  CachedMemory(allocator::CachingAllocator& allocator, Gpu& gpu, const Device& device);

  void* allocate(std::int64_t bytes) override;
  void free(void* block, Recorded recorded) override;
  const allocator::CachingAllocator& allocator() const { return allocator_; }
  allocator::CachingAllocator& allocator() { return allocator_; }

 private:
  allocator::CachingAllocator& allocator_;
  Gpu& gpu_;
};

/// Of one rank among so many. Its retries hold up all, since they wait for one another in collectives.
allocator::DriverCost driver_cost(int ranks);

/// Communicators for parameters that are resharded to fewer ranks after forward: one for each unit, since every
/// `fully_shard` makes a mesh of its own (pytorch/pytorch#153302).
struct Regathers {
  int ranks = 0;
  std::size_t units = 0;
};
Regathers regathers_of(const TorchRun& run);

/// What the device of a run holds besides the allocator: context and communicators, which it makes as it needs them.
allocator::OutsideMemory outside_memory(const Cluster& cluster, const Software& software, int shard_ranks, int replicas,
                                        const Regathers& regathers = {});

}  // namespace foreshard::sim::torch
