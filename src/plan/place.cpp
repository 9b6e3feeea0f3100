#include <algorithm>

#include "base/error.hpp"
#include "plan/build.hpp"
#include "plan/lifetimes.hpp"

namespace foreshard::plan {
namespace {

/// Persistent buffers side by side at the bottom of the arena. Returns where they end.
std::int64_t place_persistent(Plan& plan) {
  std::int64_t top = 0;
  for (Buffer& buffer : plan.buffers)
    if (buffer.persistent) top = (buffer.offset_bytes = top) + buffer.size_bytes;
  return top;
}

/// Pairs of buffers that conflict across the border of two micro-batches; symmetric.
class BorderConflicts {
 public:
  explicit BorderConflicts(const Plan& plan) : partners_(plan.buffers.size()) {
    const Segment* before = nullptr;
    for (const Segment& segment : plan.segments) {
      if (segment.name == Segment::Name::update) break;
      if (before) add(plan, *before, segment);
      if (segment.name == Segment::Name::middle) add(plan, segment, segment);
      before = &segment;
    }
  }
  bool operator()(BufferId a, BufferId b) const {
    return std::ranges::find(partners_[a.value], b) != partners_[a.value].end();
  }
  bool any(BufferId a) const { return !partners_[a.value].empty(); }

 private:
  void add(const Plan& plan, const Segment& before, const Segment& segment) {
    for (const auto& [a, b] : conflicts_across(plan, before, segment)) {
      FORESHARD_EXPECT(a != b || plan.buffers[a.value].memory == MemoryClass::gathered,
                       "a buffer conflicts with its own next instance");
      partners_[a.value].push_back(b);
      partners_[b.value].push_back(a);
    }
  }
  std::vector<std::vector<BufferId>> partners_;  // by buffer
};

/// Best fit: each buffer goes into the smallest gap, between the placed buffers it conflicts with, that holds it;
/// largest first.
class BestFit {
 public:
  explicit BestFit(std::int64_t bottom) : bottom_(bottom) {}

  template <class Conflicts>
  std::int64_t place(const Lifetime& life, const Conflicts& conflicts) {
    std::int64_t best = -1, best_gap = INT64_MAX, free_from = bottom_;
    for (const Placed& placed : placed_) {
      if (!conflicts(*placed.life, life)) continue;
      const std::int64_t gap = placed.offset - free_from;
      if (gap >= life.size_bytes && gap < best_gap) best_gap = gap, best = free_from;
      free_from = std::max(free_from, placed.offset + placed.life->size_bytes);
    }
    const std::int64_t offset = best >= 0 ? best : free_from;
    const auto position = std::ranges::upper_bound(placed_, offset, {}, &Placed::offset);
    placed_.insert(position, {offset, &life});
    return offset;
  }

 private:
  struct Placed {
    std::int64_t offset;
    const Lifetime* life;
  };
  std::int64_t bottom_;
  std::vector<Placed> placed_;  // by offset
};

/// Largest first; of equals, the one that is born first.
std::vector<const Lifetime*> by_size(const std::vector<std::optional<Lifetime>>& lives) {
  std::vector<const Lifetime*> sorted;
  for (const auto& life : lives)
    if (life) sorted.push_back(&*life);
  std::ranges::stable_sort(sorted, [](const Lifetime* a, const Lifetime* b) {
    return a->size_bytes != b->size_bytes ? a->size_bytes > b->size_bytes : a->birth < b->birth;
  });
  return sorted;
}

}  // namespace

void place(Plan& plan) {
  const std::int64_t bottom = place_persistent(plan);
  const Segment& first = plan.segments.front();
  const Order order(plan, first);
  const auto lives = lifetimes(plan, first, order);
  const BorderConflicts across(plan);
  BestFit fit(bottom);
  std::int64_t top = bottom;
  for (const Lifetime* life : by_size(lives)) {
    const bool border = across.any(life->buffer);
    const auto conflicts = [&](const Lifetime& a, const Lifetime& b) {
      return conflict(a, b) || (border && across(a.buffer, b.buffer));
    };
    plan.buffers[life->buffer.value].offset_bytes = fit.place(*life, conflicts);
    top = std::max(top, plan.buffers[life->buffer.value].offset_bytes + life->size_bytes);
  }
  plan.arena_bytes = top;
}

}  // namespace foreshard::plan
