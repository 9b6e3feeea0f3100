// What goes back to the driver: garbage, oversize blocks, everything that is free.
#include <algorithm>

#include "sim/allocator/caching_allocator.hpp"

namespace foreshard::sim::allocator {

/// Releases whole free segments of the large pool, those of at least average age first, until reserved bytes are down
/// to the threshold or none is left. Age: searches of the pool since the block became free.
void CachingAllocator::collect_garbage() {
  if (!settings_.collects_garbage()) return;
  const auto allowed = static_cast<double>(static_cast<Bytes>(settings_.memory_fraction * double(device_)));
  const Bytes threshold = static_cast<Bytes>(settings_.garbage_collection_threshold * allowed);
  const Bytes target = statistics_.reserved.current - threshold;
  Pool& pool = pools_[1];
  std::vector<Block*> whole;
  std::int64_t ages = 0;
  for (auto& blocks : pool.cached)
    for (Block& block : blocks)
      if (!block.is_split()) whole.push_back(&block), ages += pool.searches - block.free_since;
  for (Bytes reclaimed = 0; reclaimed < target && !whole.empty();) {
    const double average = static_cast<double>(ages) / static_cast<double>(whole.size());
    const auto young = std::ranges::partition(
        whole, [&](const Block* block) { return double(pool.searches - block->free_since) < average; });
    for (Block* block : young) {
      reclaimed += block->size, ages -= pool.searches - block->free_since;
      release_segment(*block);
    }
    whole.erase(young.begin(), young.end());
  }
}

/// Where blocks are not split beyond a size: releases cached blocks of that size and more, of the request's stream: the
/// smallest that is as large as the request, else several from the largest down. Whether they are enough.
bool CachingAllocator::release_oversize(const Request& request) {
  if (settings_.max_split_bytes == Settings::unlimited || settings_.expandable_segments) return false;
  auto& blocks = request.pool->cached[std::size_t(request.stream)];
  const Bytes wanted = std::max(request.rounded, settings_.max_split_bytes);
  if (const auto found = blocks.lower_bound(wanted, BySize{}); found != blocks.end())
    return release_segment(*found), true;
  Bytes released = 0;
  while (released < wanted && !blocks.empty() && blocks.rbegin()->size >= settings_.max_split_bytes) {
    released += blocks.rbegin()->size;
    release_segment(*blocks.rbegin());
  }
  return released >= wanted;
}

void CachingAllocator::release_cached() {
  ++statistics_.syncs;
  while (!waiting_.empty()) {
    clock_ = std::max(clock_, waiting_.front().completes_at);
    take_back_earliest();
  }
  release_cached(pools_[1]);
  release_cached(pools_[0]);
}

void CachingAllocator::release_cached(Pool& pool) {
  std::vector<Block*> expandable;
  for (auto& blocks : pool.cached)
    for (auto next = blocks.begin(); next != blocks.end();) {
      Block& block = *next++;
      if (block.expandable != nullptr)
        expandable.push_back(&block);
      else if (!block.is_split())
        release_segment(block);
    }
  for (Block* block : expandable) unmap(*block);
}

void CachingAllocator::release_segment(Block& block) {
  clock_ = std::max(clock_, idle_at_) + cost_.of_free(block.size);
  ++statistics_.device_frees;
  statistics_.reserved.subtract(block.size);
  pool_of(block).erase(block);
  blocks_.give_back(block);
}

Nanoseconds CachingAllocator::empty_cache(Nanoseconds now, Nanoseconds idle_at) {
  clock_ = now, idle_at_ = idle_at;
  release_cached();
  return clock_;
}

}  // namespace foreshard::sim::allocator
