#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "plan/op.hpp"

namespace foreshard::plan {

/// When a buffer is alive, counted in ops of the compute lane: from `birth` to before `end`.
struct Interval {
  std::uint32_t birth = 0, end = 0;
};

/// A buffer to be placed.
struct Request {
  BufferId buffer;
  std::int64_t size_bytes = 0;
  std::span<const Interval> alive;
  /// It conflicts with another buffer exactly if some of their intervals overlap.
  bool by_intervals = false;
};

/// Best fit: each buffer goes into the smallest gap, between the placed buffers it conflicts with, that holds it.
///
/// Most buffers are *local*: alive for some tens of compute ops. They can only conflict with local ones of the same
/// stretch of that lane and with those that are not local, so only these are looked at. The result is that of looking
/// at all.
class BestFit {
 public:
  /// Nothing is placed below `bottom`.
  explicit BestFit(std::int64_t bottom) : bottom_(bottom) {}

  /// The offset. Where intervals do not say it, `conflicts(placed)` says whether the buffer conflicts with a placed
  /// one.
  template <class Conflicts>
  std::int64_t place(const Request& request, const Conflicts& conflicts) {
    const std::int64_t offset = request.by_intervals ? best_by_intervals(request) : best_by(request, conflicts);
    insert(request, offset);
    return offset;
  }

 private:
  struct Placed {
    std::int64_t offset, end;
    Interval alive;
  };
  struct PlacedBuffer {
    std::int64_t offset, end;
    BufferId buffer;
  };
  using ByOffset = std::vector<Placed>;

  /// The smallest gap that holds `size_bytes`, among placed buffers that are seen in order of offset.
  struct Gap {
    std::int64_t size_bytes, free_from, best = -1, best_gap = INT64_MAX;
    void see(std::int64_t offset, std::int64_t end) {
      const std::int64_t gap = offset - free_from;
      if (gap >= size_bytes && gap < best_gap) best_gap = gap, best = free_from;
      if (end > free_from) free_from = end;
    }
    std::int64_t offset() const { return best >= 0 ? best : free_from; }
  };

  template <class Conflicts>
  std::int64_t best_by(const Request& request, const Conflicts& conflicts) const {
    Gap gap{request.size_bytes, bottom_};
    for (const PlacedBuffer& placed : buffers_)
      if (conflicts(placed.buffer)) gap.see(placed.offset, placed.end);
    return gap.offset();
  }

  std::int64_t best_by_intervals(const Request& request);
  void meet(const ByOffset& list, const Interval& alive);
  void insert(const Request& request, std::int64_t offset);

  std::int64_t bottom_;
  std::vector<PlacedBuffer> buffers_;
  ByOffset all_, wide_;                                // by interval; wide: those that are not local
  std::vector<ByOffset> stretches_;                    // of local ones; one that crosses a border is in both
  std::vector<std::vector<const Placed*>> met_;        // room for what a request meets, by list
  std::vector<std::span<const Placed* const>> lists_;  // what it meets
};

}  // namespace foreshard::plan
