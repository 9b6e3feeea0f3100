#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "plan/lifetimes.hpp"

namespace foreshard::plan {

/// Best fit: each buffer goes into the smallest gap, between the placed buffers it conflicts with, that holds it.
///
/// Most buffers are *local*: alive for some tens of compute ops. They can only conflict with local ones of the same
/// stretch of that lane and with those that are not local, so only these are looked at. The result is that of looking
/// at all.
class BestFit {
 public:
  /// Nothing is placed below `bottom`.
  explicit BestFit(std::int64_t bottom) : bottom_(bottom) {}

  /// The offset for `life`, which must outlive this. `simple`: whether it conflicts with another is said by
  /// `plan::conflict` of the two; else `conflicts` is asked about every placed buffer.
  template <class Conflicts>
  std::int64_t place(const Lifetime& life, bool simple, const Conflicts& conflicts) {
    const bool by_compute = simple && life.compute_only;
    const std::int64_t offset = by_compute ? best_by_compute(life) : best_by(life, conflicts);
    insert({offset, offset + life.size_bytes, life.birth[0], life.compute_end}, life, simple);
    return offset;
  }

 private:
  struct Placed {
    std::int64_t offset, end;
    std::uint32_t birth, compute_end;
  };
  using ByOffset = std::vector<Placed>;

  /// The smallest gap that holds `size_bytes`, among placed buffers that are seen in order of offset.
  struct Gap {
    std::int64_t size_bytes, free_from, best = -1, best_gap = INT64_MAX;
    void see(const Placed& placed) {
      const std::int64_t gap = placed.offset - free_from;
      if (gap >= size_bytes && gap < best_gap) best_gap = gap, best = free_from;
      if (placed.end > free_from) free_from = placed.end;
    }
    std::int64_t offset() const { return best >= 0 ? best : free_from; }
  };

  static constexpr std::uint32_t stretch_ops = 64;
  static std::uint32_t first_stretch(const Lifetime& life) { return life.birth[0] / stretch_ops; }
  static std::uint32_t last_stretch(const Lifetime& life) { return life.compute_end / stretch_ops; }
  static bool is_local(const Lifetime& life) { return last_stretch(life) <= first_stretch(life) + 1; }

  template <class Conflicts>
  std::int64_t best_by(const Lifetime& life, const Conflicts& conflicts) const {
    Gap gap{life.size_bytes, bottom_};
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (conflicts(*lives_[i], life)) gap.see(all_[i]);
    return gap.offset();
  }

  std::int64_t best_by_compute(const Lifetime& life);
  std::int64_t best_nearby(const Lifetime& life);
  void insert(const Placed& placed, const Lifetime& life, bool simple);

  std::int64_t bottom_;
  ByOffset all_, wide_;                 // wide: those that are not local
  std::vector<const Lifetime*> lives_;  // of `all_`
  std::vector<ByOffset> stretches_;     // of local ones; one that crosses a border is in both
  std::array<std::vector<const Placed*>, 3> met_;
};

}  // namespace foreshard::plan
