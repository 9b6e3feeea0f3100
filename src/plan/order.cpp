#include "plan/order.hpp"

#include <algorithm>

namespace foreshard::plan {
namespace {

std::size_t lane_of(const Op& op) { return static_cast<std::size_t>(op.lane); }

}  // namespace

Order::Order(const Plan& plan, const Segment& segment) : plan_(plan) { append(segment); }

Order::Order(const Plan& plan, const Segment& before, const Segment& segment) : plan_(plan) {
  parts_.reserve(2);
  append(before);
  append(segment);
}

bool Order::precedes(OpId a, OpId b) const { return start(b)[lane_of(plan_.ops[a.value])] >= position(a); }

void Order::append(const Segment& segment) {
  parts_.push_back({.segment = &segment});
  Part& part = parts_.back();
  part.start.reserve(segment.op_count);
  part.position.reserve(segment.op_count);
  for (const Op& op : plan_.ops_of(segment)) {
    Clock clock = lane_end_[lane_of(op)];
    for (const Wait& wait : plan_.waits_of(op)) join_wait(clock, wait);
    part.start.push_back(clock);
    part.position.push_back(++clock[lane_of(op)]);
    lane_end_[lane_of(op)] = clock;
  }
}

void Order::join_wait(Clock& clock, const Wait& wait) const {
  const int current = static_cast<int>(parts_.size()) - 1;
  if (wait.on == Wait::On::op) return join(clock, {wait.index}, current);
  if (current == 0) return;
  const auto& points = parts_[0].segment->points[static_cast<std::size_t>(wait.on) - 1];
  if (wait.index < points.size() && points[wait.index].valid()) join(clock, points[wait.index], current - 1);
}

void Order::join(Clock& clock, OpId op, int instance) const {
  const Clock& other = start(op, instance);
  for (std::size_t lane = 0; lane < lane_count; ++lane) clock[lane] = std::max(clock[lane], other[lane]);
  std::uint32_t& own = clock[lane_of(plan_.ops[op.value])];
  own = std::max(own, position(op, instance));
}

}  // namespace foreshard::plan
