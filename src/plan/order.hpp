#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace foreshard::plan {

/// By lane, how many of its ops have certainly ended. Padded so that comparisons vectorise.
using Clock = std::array<std::uint32_t, 8>;

/// True if everything that `a` counts is counted by `b`.
constexpr bool covers(const Clock& b, const Clock& a) {
  bool all = true;
  for (std::size_t lane = 0; lane < lane_count; ++lane) all &= a[lane] <= b[lane];
  return all;
}

/// What precedes what in one segment, or in two that follow each other: a vector clock per op, so each question is
/// O(1). The first of the two segments is taken to begin when everything before it has ended.
class Order {
 public:
  explicit Order(const Plan& plan, const Segment& segment);
  Order(const Plan& plan, const Segment& before, const Segment& segment);

  /// What has certainly ended when `op` starts. `instance` 0 is the earlier segment (or the only one), 1 the later.
  const Clock& start(OpId op, int instance = 0) const {
    return parts_[static_cast<std::size_t>(instance)].start[index(op, instance)];
  }
  /// The position of `op` on its lane, counted from 1.
  std::uint32_t position(OpId op, int instance = 0) const {
    return parts_[static_cast<std::size_t>(instance)].position[index(op, instance)];
  }
  /// True if `a` has ended before `b` starts, in every timing that lanes and waits permit. Within one segment.
  bool precedes(OpId a, OpId b) const;

 private:
  struct Part {
    const Segment* segment = nullptr;
    std::vector<Clock> start;
    std::vector<std::uint32_t> position;
  };
  std::size_t index(OpId op, int instance) const {
    return op.value - parts_[static_cast<std::size_t>(instance)].segment->first_op;
  }
  void append(const Segment& segment);
  void join_wait(Clock& clock, const Wait& wait) const;
  void join(Clock& clock, OpId op, int instance) const;

  const Plan& plan_;
  std::vector<Part> parts_;
  std::array<Clock, lane_count> lane_end_{};  // what has ended when the lane's last op has ended
};

}  // namespace foreshard::plan
