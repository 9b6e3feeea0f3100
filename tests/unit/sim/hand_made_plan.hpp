#pragma once
#include <vector>

#include "plan/plan.hpp"

namespace foreshard::sim::test {

/// Builds plans by hand. The `rows` of an op's sizes are its duration in nanoseconds.
class HandMadePlan {
 public:
  HandMadePlan() { open(plan::Segment::Name::only); }

  void open(plan::Segment::Name name) {
    plan::Segment segment;
    segment.name = name;
    segment.first_op = static_cast<std::uint32_t>(plan_.ops.size());
    plan_.segments.push_back(segment);
  }

  /// Starts again with a plan of `micro_batches`, nothing in it.
  static HandMadePlan empty(int micro_batches) {
    HandMadePlan made;
    made.plan_.segments.clear();
    made.plan_.micro_batches = micro_batches;
    return made;
  }

  plan::OpId op(plan::Lane lane, std::int64_t duration_ns, std::vector<plan::Wait> waits = {}) {
    plan::Op op;
    op.kind = lane == plan::Lane::compute ? plan::OpKind::gelu : plan::OpKind::all_gather;
    op.lane = lane;
    op.unit = {0};
    op.sizes.rows = duration_ns;
    op.first_wait = static_cast<std::uint32_t>(plan_.waits.size());
    op.wait_count = static_cast<std::uint32_t>(waits.size());
    plan_.waits.insert(plan_.waits.end(), waits.begin(), waits.end());
    plan_.ops.push_back(op);
    ++plan_.segments.back().op_count;
    return {static_cast<std::uint32_t>(plan_.ops.size() - 1)};
  }

  void point(plan::Wait::On on, std::uint32_t unit, plan::OpId op) {
    auto& ops = plan_.segments.back().points[static_cast<std::size_t>(on) - 1];
    if (ops.size() <= unit) ops.resize(unit + 1);
    ops[unit] = op;
  }

  /// An empty update segment closes every training plan.
  const plan::Plan& finish() {
    if (plan_.segments.back().name != plan::Segment::Name::update) open(plan::Segment::Name::update);
    return plan_;
  }

 private:
  plan::Plan plan_;
};

inline plan::Wait on(plan::OpId op) { return {plan::Wait::On::op, op.value}; }

}  // namespace foreshard::sim::test
