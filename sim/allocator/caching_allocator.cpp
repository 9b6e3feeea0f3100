#include "sim/allocator/caching_allocator.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "sim/allocator/rounding.hpp"

namespace foreshard::sim::allocator {

CachingAllocator::CachingAllocator(const Settings& settings, Bytes device_bytes, Bytes outside_bytes,
                                   const DriverCost& cost)
    : settings_(settings), device_(device_bytes), outside_(outside_bytes), cost_(cost) {
  pools_[0].small = true;
}

Allocation CachingAllocator::allocate(Bytes bytes, Stream stream, Nanoseconds now, Nanoseconds idle_at, Label label) {
  FORESHARD_EXPECT(bytes >= 0 && stream >= 0, "allocate needs a size and a stream");
  if (bytes == 0) return {nullptr, now, false};
  poll(now);
  clock_ = now, idle_at_ = idle_at;
  const Request request = request_of(bytes, stream, label);
  Block* block = find_cached(request);
  if (block == nullptr) block = from_driver(request);
  if (block == nullptr) return {nullptr, fail(request), true};
  return {hand_out(*block, request), clock_, false};
}

CachingAllocator::Request CachingAllocator::request_of(Bytes bytes, Stream stream, Label label) {
  const Bytes rounded = rounded_size(bytes, settings_);
  Pool& pool = pools_[is_small(rounded) ? 0 : 1];
  while (pool.cached.size() <= std::size_t(stream)) pool.cached.emplace_back(), pool.unmapped.emplace_back();
  return {bytes, rounded, segment_size(rounded, settings_), stream, label, &pool};
}

Block* CachingAllocator::find_cached(const Request& request) {
  if (settings_.collects_garbage()) ++request.pool->searches;
  auto& blocks = request.pool->cached[std::size_t(request.stream)];
  auto found = blocks.lower_bound(request.rounded, BySize{});
  if (found == blocks.end()) return nullptr;
  if (settings_.expandable_segments) {
    const auto could_be = [](const Block& block) {
      return block.size + (block.after != nullptr && !block.after->mapped ? block.after->size : 0);
    };
    for (auto next = std::next(found); next != blocks.end() && could_be(*next) < could_be(*found);) found = next++;
  }
  if (is_refused(*found, request)) return nullptr;
  Block& block = *found;
  blocks.erase(found);
  return &block;
}

bool CachingAllocator::is_refused(const Block& block, const Request& request) const {
  const bool oversize = request.rounded >= settings_.max_split_bytes;
  return oversize ? block.size >= request.rounded + settings_.max_unsplit_excess_bytes
                  : block.size >= settings_.max_split_bytes;
}

Block* CachingAllocator::from_driver(const Request& request) {
  collect_garbage();
  if (Block* block = grow(request)) return block;
  if (release_oversize(request))
    if (Block* block = grow(request)) return block;
  release_cached();
  ++statistics_.retries;
  return grow(request);
}

Block* CachingAllocator::grow(const Request& request) {
  if (settings_.limits_memory() && statistics_.reserved.current + request.segment >
                                       static_cast<Bytes>(settings_.memory_fraction * static_cast<double>(device_)))
    return nullptr;
  return settings_.expandable_segments ? grow_expandable(request) : new_segment(request);
}

Block* CachingAllocator::new_segment(const Request& request) {
  if (device_free() < request.segment) return nullptr;
  Block& block = blocks_.fresh();
  block.address = next_address_, block.size = request.segment;
  block.stream = request.stream, block.small = request.pool->small;
  next_address_ += request.segment;
  statistics_.reserved.add(request.segment);
  ++statistics_.device_allocs;
  clock_ += cost_.of_malloc(request.segment);
  return &block;
}

bool CachingAllocator::leaves_rest(const Block& block, Bytes rounded) const {
  const Bytes rest = block.size - rounded;
  if (block.small || settings_.expandable_segments) return rest >= block_unit;
  return rounded < settings_.max_split_bytes && rest > small_limit;
}

Block* CachingAllocator::hand_out(Block& found, const Request& request) {
  const bool was_split = found.is_split(), cut = leaves_rest(found, request.rounded);
  Block& block = cut ? cut_front(found, request.rounded) : found;
  if (block.expandable == nullptr) {
    if (was_split)
      statistics_.inactive_split.subtract(block.size);
    else if (cut)
      statistics_.inactive_split.add(found.size);
  }
  block.allocated = true;
  block.requested = request.bytes, block.label = request.label;
  statistics_.allocated.add(block.size);
  statistics_.active.add(block.size);
  statistics_.requested.add(request.bytes);
  return &block;
}

Block& CachingAllocator::cut_front(Block& block, Bytes bytes) {
  Block& front = blocks_.fresh();
  front.address = block.address, front.size = bytes;
  front.stream = block.stream, front.small = block.small, front.expandable = block.expandable;
  front.before = block.before, front.after = &block;
  if (front.before != nullptr) front.before->after = &front;
  block.before = &front;
  block.address += bytes, block.size -= bytes;
  pool_of(block).insert(block);
  return front;
}

void CachingAllocator::free(Block* block) {
  if (block == nullptr) return;
  FORESHARD_EXPECT(block->allocated, "only an allocated block is freed, once");
  block->allocated = false;
  statistics_.allocated.subtract(block->size);
  take_back(*block);
}

void CachingAllocator::free(Block* block, Nanoseconds completes_at) {
  if (block == nullptr) return;
  FORESHARD_EXPECT(block->allocated, "only an allocated block is freed, once");
  block->allocated = false, block->waiting = true;
  statistics_.allocated.subtract(block->size);
  waiting_.push_back({completes_at, frees_++, block});
  std::push_heap(waiting_.begin(), waiting_.end());
}

void CachingAllocator::poll(Nanoseconds now) {
  while (!waiting_.empty() && waiting_.front().completes_at <= now) take_back_earliest();
}

void CachingAllocator::take_back_earliest() {
  Block& block = *waiting_.front().block;
  std::pop_heap(waiting_.begin(), waiting_.end());
  waiting_.pop_back();
  block.waiting = false;
  take_back(block);
}

void CachingAllocator::take_back(Block& block) {
  const Bytes size = block.size;
  statistics_.requested.subtract(block.requested);
  const Bytes absorbed = absorb(block, block.before) + absorb(block, block.after);
  pool_of(block).insert(block);
  if (block.expandable == nullptr) {
    const Bytes change = (block.is_split() ? block.size : 0) - absorbed;
    change > 0 ? statistics_.inactive_split.add(change) : statistics_.inactive_split.subtract(-change);
  }
  statistics_.active.subtract(size);
}

/// Adds a free neighbour, mapped or not as the block is, to the block. Returns its size, or 0.
Bytes CachingAllocator::absorb(Block& block, Block* neighbour) {
  if (neighbour == nullptr || !neighbour->is_free() || neighbour->mapped != block.mapped) return 0;
  if (block.before == neighbour) {
    block.address = neighbour->address;
    block.before = neighbour->before;
    if (block.before != nullptr) block.before->after = &block;
  } else {
    block.after = neighbour->after;
    if (block.after != nullptr) block.after->before = &block;
  }
  Pool& pool = pool_of(block);
  if (neighbour->mapped)
    pool.erase(*neighbour);
  else
    pool.unmapped[std::size_t(block.stream)].erase(*neighbour);
  const Bytes size = neighbour->size;
  block.size += size;
  blocks_.give_back(*neighbour);
  return size;
}

PoolCache CachingAllocator::cache_of(bool small) const {
  PoolCache cache;
  for (const auto& blocks : pools_[small ? 0 : 1].cached)
    for (const Block& block : blocks) cache.cached += block.size, cache.largest = std::max(cache.largest, block.size);
  return cache;
}

Nanoseconds CachingAllocator::fail(const Request& request) {
  ++statistics_.ooms;
  const auto& mine = request.pool->cached[std::size_t(request.stream)];
  failure_ = {request.bytes,
              request.rounded,
              request.segment,
              request.stream,
              device_,
              device_free(),
              outside_,
              static_cast<Bytes>(settings_.memory_fraction * static_cast<double>(device_)),
              statistics_.allocated.current,
              statistics_.active.current,
              statistics_.reserved.current,
              cache_of(true),
              cache_of(false),
              mine.empty() ? 0 : mine.rbegin()->size};
  return clock_;
}

}  // namespace foreshard::sim::allocator
