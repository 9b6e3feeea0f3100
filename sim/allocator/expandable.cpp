// Expandable segments: a virtual range of 9/8 of the device for each pool and stream (more if one is too broken up),
// whose pages of 2 MiB (small) or 20 MiB (large) are mapped where a request needs them and unmapped when memory is out.
#include <algorithm>

#include "sim/allocator/caching_allocator.hpp"
#include "sim/allocator/rounding.hpp"

namespace foreshard::sim::allocator {

/// Maps the lowest addresses that give the request room, with a free block in front of them where there is one.
Block* CachingAllocator::grow_expandable(const Request& request) {
  Block* block = &room_for(request);
  if (!block->mapped && !map(*block, std::min(block->size, request.rounded))) return nullptr;
  while (block->size < request.rounded) {
    if (block->after == nullptr) return nullptr;
    Block& beyond = *block->after;
    if (!map(beyond, std::min(request.rounded - block->size, beyond.size))) return nullptr;
    block = &beyond;  // has absorbed the one before
  }
  request.pool->erase(*block);
  return block;
}

/// The first run of free and unmapped blocks in which the request fits.
Block& CachingAllocator::room_for(const Request& request) {
  const auto fits_from = [&](const Block* block) {
    Bytes room = 0;
    for (; room < request.rounded && block != nullptr && block->is_free(); block = block->after) room += block->size;
    return room >= request.rounded;
  };
  for (Block& gap : request.pool->unmapped[std::size_t(request.stream)]) {
    Block& first = gap.before != nullptr && gap.before->is_free() ? *gap.before : gap;
    if (fits_from(&first)) return first;
  }
  return reserve_range(request);
}

Block& CachingAllocator::reserve_range(const Request& request) {
  const Bytes page = request.pool->small ? small_segment : settings_.large_segment_bytes;
  const Bytes size = round_up(device_ + device_ / 8, page);
  ranges_.push_back(std::make_unique<ExpandableSegment>(ExpandableSegment{next_address_, page}));
  next_address_ += size;
  Block& block = blocks_.fresh();
  block.address = ranges_.back()->base, block.size = size;
  block.stream = request.stream, block.small = request.pool->small;
  block.expandable = ranges_.back().get(), block.mapped = false;
  request.pool->unmapped[std::size_t(request.stream)].insert(block);
  return block;
}

/// Maps whole pages from the beginning of an unmapped block, at least `bytes`; the rest stays unmapped. The block takes
/// in its free neighbours and is free. All or nothing.
bool CachingAllocator::map(Block& block, Bytes bytes) {
  const Bytes mapped = round_up(bytes, block.expandable->page);
  if (device_free() < mapped) return false;
  auto& unmapped = pool_of(block).unmapped[std::size_t(block.stream)];
  unmapped.erase(block);
  if (mapped < block.size) {
    Block& rest = piece_beside(block, block.address + mapped, block.size - mapped);
    rest.before = &block, rest.after = block.after;
    if (rest.after != nullptr) rest.after->before = &rest;
    block.after = &rest, block.size = mapped;
    unmapped.insert(rest);
  }
  block.mapped = true;
  absorb(block, block.before);
  absorb(block, block.after);
  pool_of(block).insert(block);
  statistics_.reserved.add(mapped);
  ++statistics_.device_allocs;
  clock_ += cost_.of_map(mapped / block.expandable->page);
  return true;
}

/// A further block of the same range, like `block` in all but its place.
Block& CachingAllocator::piece_beside(const Block& block, Bytes address, Bytes size) {
  Block& piece = blocks_.fresh();
  piece.address = address, piece.size = size;
  piece.stream = block.stream, piece.small = block.small, piece.expandable = block.expandable;
  piece.mapped = block.mapped;
  return piece;
}

/// Unmaps the whole pages inside a free block; what is left on either side stays free.
void CachingAllocator::unmap(Block& block) {
  const ExpandableSegment& range = *block.expandable;
  const Bytes begin = range.base + round_up(block.address - range.base, range.page);
  const Bytes end = range.base + (block.address + block.size - range.base) / range.page * range.page;
  if (begin >= end) return;
  Pool& pool = pool_of(block);
  pool.erase(block);
  if (begin > block.address) {
    Block& front = piece_beside(block, block.address, begin - block.address);
    front.before = block.before, front.after = &block;
    if (front.before != nullptr) front.before->after = &front;
    block.before = &front;
    pool.insert(front);
  }
  if (const Bytes rest = block.address + block.size - end; rest > 0) {
    Block& back = piece_beside(block, end, rest);
    back.before = &block, back.after = block.after;
    if (back.after != nullptr) back.after->before = &back;
    block.after = &back;
    pool.insert(back);
  }
  block.address = begin, block.size = end - begin, block.mapped = false;
  absorb(block, block.before);
  absorb(block, block.after);
  pool.unmapped[std::size_t(block.stream)].insert(block);
  statistics_.reserved.subtract(end - begin);
  ++statistics_.device_frees;
  clock_ = std::max(clock_, idle_at_) + cost_.of_unmap((end - begin) / range.page);
  if (!block.is_split()) release_range(block);
}

void CachingAllocator::release_range(Block& block) {
  const auto found = std::ranges::find(ranges_, block.expandable, &std::unique_ptr<ExpandableSegment>::get);
  pool_of(block).unmapped[std::size_t(block.stream)].erase(block);
  blocks_.give_back(block);
  ranges_.erase(found);
}

}  // namespace foreshard::sim::allocator
