#pragma once
#include <array>
#include <memory>
#include <vector>

#include "sim/allocator/block.hpp"
#include "sim/allocator/driver_cost.hpp"
#include "sim/allocator/out_of_memory.hpp"
#include "sim/allocator/statistics.hpp"

namespace foreshard::sim::allocator {

/// What an allocation gives. The block belongs to the allocator and is the caller's to free; null for nothing asked
/// or out of memory.
struct Allocation {
  Block* block = nullptr;
  Nanoseconds host_at = 0;     ///< when the host goes on: now, or after the driver's calls and the waits they imply
  bool out_of_memory = false;  ///< then `failure()` says why
};

/// PyTorch's CUDA caching allocator of one device, in virtual time: which block every request gets, what it asks the
/// driver for, when it stalls, and its statistics. O(log free blocks) a call.
///
/// An allocation first takes back freed blocks whose other streams have passed; then the smallest free block of its
/// stream and pool that holds the rounded size (ties by address; segments lie by age); then asks the driver; then,
/// after releasing oversize blocks, or after waiting for all outstanding events and releasing every segment that is
/// wholly free, asks again (a retry); then fails. A block larger than needed is split where the rest is worth it; on
/// return it merges with free neighbours.
///
/// Source: pytorch/pytorch@001074d2 c10/cuda/CUDACachingAllocator.cpp; PyTorch 2.15's own library counts the same over
/// long random sequences (tests/unit/allocator/pytorch_test.cpp), but for the peak of inactive split bytes, which
/// depends on the order in which events that are done at once are seen. Left out: pools of CUDA graphs, peer memory.
class CachingAllocator {
 public:
  /// `outside_bytes` of the device are taken by others (see set_outside).
  CachingAllocator(const Settings& settings, Bytes device_bytes, Bytes outside_bytes = 0, const DriverCost& cost = {});

  /// At time `now` of the host, which never goes back. `idle_at`: when the device will have done all that the host has
  /// issued; segments go back to the driver only then (cudaFree waits for it). `label` stays with the block.
  /// Contract: bytes ≥ 0, stream ≥ 0.
  Allocation allocate(Bytes bytes, Stream stream, Nanoseconds now, Nanoseconds idle_at = 0, Label label = Label::none);

  /// A block that no other stream used; it can be reused at once. Null is nothing.
  void free(Block* block);
  /// A block recorded on other streams, whose work on it is done at `completes_at`: it stays active until an allocation
  /// (or `poll`) not earlier than that.
  void free(Block* block, Nanoseconds completes_at);

  /// Takes back freed blocks whose other streams have passed by `now`.
  void poll(Nanoseconds now);

  /// Waits for all outstanding events and gives back all wholly free segments. Returns when the host goes on.
  Nanoseconds empty_cache(Nanoseconds now, Nanoseconds idle_at = 0);

  /// Bytes of the device that are used but not through this allocator: context, communicators, other processes.
  void set_outside(Bytes bytes) { outside_ = bytes; }
  Bytes outside() const { return outside_; }
  Bytes device_free() const { return device_ - outside_ - statistics_.reserved.current; }

  const Statistics& statistics() const { return statistics_; }
  void reset_peaks() { statistics_.reset_peaks(); }
  const Settings& settings() const { return settings_; }
  /// Of the last allocation that failed.
  const OutOfMemory& failure() const { return failure_; }
  /// The free blocks of a pool, of all streams.
  PoolCache cache_of(bool small) const;

 private:
  struct Request {
    Bytes bytes = 0, rounded = 0, segment = 0;
    Stream stream = 0;
    Label label = Label::none;
    Pool* pool = nullptr;
  };
  struct Waiting {
    Nanoseconds completes_at = 0;
    std::int64_t order = 0;
    Block* block = nullptr;
    bool operator<(const Waiting& other) const {  // of the heap: the earliest is on top
      return completes_at != other.completes_at ? completes_at > other.completes_at : order > other.order;
    }
  };

  // caching_allocator.cpp
  Request request_of(Bytes bytes, Stream stream, Label label);
  Block* find_cached(const Request& request);
  bool is_refused(const Block& block, const Request& request) const;
  Block* from_driver(const Request& request);
  Block* grow(const Request& request);
  Block* new_segment(const Request& request);
  bool leaves_rest(const Block& block, Bytes rounded) const;
  Block* hand_out(Block& block, const Request& request);
  Block& cut_front(Block& block, Bytes bytes);
  void take_back(Block& block);
  Bytes absorb(Block& block, Block* neighbour);
  void take_back_earliest();
  Nanoseconds fail(const Request& request);

  // release.cpp
  Pool& pool_of(Block& block) { return pools_[block.small ? 0 : 1]; }
  void collect_garbage();
  bool release_oversize(const Request& request);
  void release_cached();
  void release_cached(Pool& pool);
  void release_segment(Block& block);

  // expandable.cpp
  Block* grow_expandable(const Request& request);
  Block& room_for(const Request& request);
  Block& reserve_range(const Request& request);
  bool map(Block& block, Bytes bytes);
  void unmap(Block& block);
  Block& piece_beside(const Block& block, Bytes address, Bytes size);
  void release_range(Block& block);

  Settings settings_;
  Bytes device_, outside_;
  DriverCost cost_;
  std::array<Pool, 2> pools_;  ///< small, large
  BlockStore blocks_;
  std::vector<std::unique_ptr<ExpandableSegment>> ranges_;
  std::vector<Waiting> waiting_;  ///< a heap
  std::int64_t frees_ = 0;
  Bytes next_address_ = 0;
  Nanoseconds clock_ = 0, idle_at_ = 0;
  Statistics statistics_;
  OutOfMemory failure_;
};

}  // namespace foreshard::sim::allocator
