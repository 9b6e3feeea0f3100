#pragma once
#include <boost/intrusive/set.hpp>
#include <deque>
#include <tuple>
#include <vector>

#include "sim/allocator/settings.hpp"

namespace foreshard::sim::allocator {

using Stream = int;                         ///< streams are numbered from 0, densely
enum class Label : std::uint32_t { none };  ///< the caller's own mark on a block

/// A virtual range whose pages are mapped as needed.
struct ExpandableSegment {
  Bytes base = 0, page = 0;
};

/// A piece of a segment: handed out, waiting for other streams, free (in its pool's set by size), or free and unmapped
/// (in the set by address). Neighbours are those of the same segment.
struct Block : boost::intrusive::set_base_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> {
  Bytes address = 0, size = 0;
  Bytes requested = 0;  ///< before rounding, while handed out
  Block *before = nullptr, *after = nullptr;
  ExpandableSegment* expandable = nullptr;
  std::int64_t free_since = 0;  ///< in searches of its pool
  Stream stream = 0;
  Label label = Label::none;
  bool small = false;
  bool allocated = false, waiting = false, mapped = true;

  bool is_free() const { return !allocated && !waiting; }
  bool is_split() const { return before != nullptr || after != nullptr; }
};

struct BySize {
  bool operator()(const Block& a, const Block& b) const {
    return std::tie(a.size, a.address) < std::tie(b.size, b.address);
  }
  bool operator()(const Block& a, Bytes size) const { return a.size < size; }
};
struct ByAddress {
  bool operator()(const Block& a, const Block& b) const { return a.address < b.address; }
};

template <typename Order>
using BlockSet =
    boost::intrusive::set<Block, boost::intrusive::compare<Order>, boost::intrusive::constant_time_size<false>>;

/// The free blocks of one size class, of every stream apart.
struct Pool {
  bool small = false;
  std::deque<BlockSet<BySize>> cached;
  std::deque<BlockSet<ByAddress>> unmapped;
  std::int64_t searches = 0;  ///< counted only where garbage is collected

  void insert(Block& block) {
    block.free_since = searches;
    cached[std::size_t(block.stream)].insert(block);
  }
  void erase(Block& block) { cached[std::size_t(block.stream)].erase(block); }
};

/// Owns all blocks; those given back are used again.
class BlockStore {
 public:
  Block& fresh() {
    if (spare_.empty()) return blocks_.emplace_back();
    Block& block = *spare_.back();
    spare_.pop_back();
    return block = Block{};
  }
  void give_back(Block& block) { spare_.push_back(&block); }

 private:
  std::deque<Block> blocks_;
  std::vector<Block*> spare_;
};

}  // namespace foreshard::sim::allocator
