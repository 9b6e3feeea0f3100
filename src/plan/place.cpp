#include <algorithm>

#include "base/error.hpp"
#include "plan/best_fit.hpp"
#include "plan/build.hpp"
#include "plan/lifetimes.hpp"

namespace foreshard::plan {
namespace {

/// Persistent buffers of a space side by side at the bottom of its arena. Returns where they end.
std::int64_t place_persistent(Plan& plan, Space space) {
  std::int64_t top = 0;
  for (Buffer& buffer : plan.buffers)
    if (buffer.persistent && buffer.space == space) top = (buffer.offset_bytes = top) + buffer.size_bytes;
  return top;
}

/// Pairs of buffers that conflict across the border of two segments; symmetric.
class BorderConflicts {
 public:
  explicit BorderConflicts(const Plan& plan) : partners_(plan.buffers.size()) {
    const Segment* before = nullptr;
    for (const Segment& segment : plan.segments) {
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

/// When buffers live, in every segment that differs in it. On the compute lane these segments count as one behind the
/// other, as buffers of different segments do not conflict by their lives.
class Lives {
 public:
  explicit Lives(const Plan& plan) : alive_(plan.buffers.size()), compute_only_(plan.buffers.size(), true) {
    std::uint32_t begin = 0;
    for (const Segment* segment : covering_segments(plan)) {
      of_segment_.push_back(lifetimes(plan, *segment, Order(plan, *segment)));
      const std::uint32_t end = begin + segment->op_count + 1;
      for (const auto& life : of_segment_.back())
        if (life) add(*life, begin, end);
      begin = end + 1;
    }
  }

  bool conflict(BufferId a, BufferId b) const {
    return std::ranges::any_of(of_segment_, [&](const auto& lives) {
      const auto &x = lives[a.value], &y = lives[b.value];
      return x && y && plan::conflict(*x, *y);
    });
  }

  std::span<const Interval> alive(BufferId buffer) const { return alive_[buffer.value]; }
  /// In every segment only the compute lane touches it, so that its conflicts are those of the intervals.
  bool compute_only(BufferId buffer) const { return compute_only_[buffer.value]; }

  /// One of each buffer's lifetimes, the largest buffers first; of equals, the one that is born first.
  std::vector<const Lifetime*> by_size() const {
    std::vector<const Lifetime*> sorted;
    for (std::size_t buffer = 0; buffer < of_segment_.front().size(); ++buffer)
      for (const auto& lives : of_segment_)
        if (lives[buffer]) {
          sorted.push_back(&*lives[buffer]);
          break;
        }
    std::ranges::stable_sort(sorted, [](const Lifetime* a, const Lifetime* b) {
      return a->size_bytes != b->size_bytes ? a->size_bytes > b->size_bytes : a->birth < b->birth;
    });
    return sorted;
  }

 private:
  void add(const Lifetime& life, std::uint32_t begin, std::uint32_t end) {
    const std::uint32_t longest = end - begin;
    alive_[life.buffer.value].push_back({begin + life.birth[0], begin + std::min(life.compute_end, longest)});
    compute_only_[life.buffer.value] = compute_only_[life.buffer.value] && life.compute_only;
  }

  std::vector<std::vector<std::optional<Lifetime>>> of_segment_;  // by buffer
  std::vector<std::vector<Interval>> alive_;                      // by buffer
  std::vector<bool> compute_only_;                                // by buffer
};

}  // namespace

/// Only persistent buffers lie in host memory; those on the device live as the waits permit.
void place(Plan& plan) {
  plan.host_arena_bytes = place_persistent(plan, Space::host);
  const std::int64_t bottom = place_persistent(plan, Space::device);
  const Lives lives(plan);
  const BorderConflicts across(plan);
  BestFit fit(bottom);
  std::int64_t top = bottom;
  for (const Lifetime* life : lives.by_size()) {
    const BufferId id = life->buffer;
    const bool border = across.any(id);
    const auto conflicts = [&](BufferId placed) {
      return lives.conflict(placed, id) || (border && across(placed, id));
    };
    Buffer& buffer = plan.buffers[id.value];
    FORESHARD_EXPECT(buffer.space == Space::device, "a buffer in host memory is not persistent");
    const bool by_intervals = lives.compute_only(id) && !border;
    buffer.offset_bytes = fit.place({id, life->size_bytes, lives.alive(id), by_intervals}, conflicts);
    top = std::max(top, buffer.offset_bytes + life->size_bytes);
  }
  plan.arena_bytes = top;
}

}  // namespace foreshard::plan
