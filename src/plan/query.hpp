#pragma once
#include <cstdint>
#include <vector>

#include "plan/plan.hpp"

namespace foreshard::plan {

/// Ops of a segment of one kind and, where given, one unit and phase, in order of issue.
struct OpQuery {
  OpKind kind{};
  UnitId unit;  ///< none: any
  bool any_phase = true;
  Phase phase = Phase::forward;
};
std::vector<OpId> find(const Plan& plan, const Segment& segment, const OpQuery& query);

/// First and last compute op of a unit's visit; none if there is none.
struct VisitOps {
  OpId first, last;
};
VisitOps find_visit(const Plan& plan, const Segment& segment, UnitId unit, Phase phase);

/// True if some timing that lanes and waits permit runs the two ops of a segment at the same time.
bool may_overlap(const Plan& plan, const Segment& segment, OpId a, OpId b);

/// FLOPs of a step's ops on one rank.
double compute_flops(const Plan& plan);

/// Parameters of the whole model that are trained; the others of `plan.parameters` are frozen.
std::int64_t trained_parameters(const Plan& plan);

/// A range of the device arena's bytes.
struct ArenaRange {
  std::int64_t offset_bytes = 0, size_bytes = 0;
};

/// The longest range without a persistent buffer: between two steps it holds nothing.
ArenaRange longest_transient_range(const Plan& plan);

/// Bytes of the largest set of device buffers that are all alive at once in some timing that the waits permit,
/// persistent ones included: no placement can do with less.
std::int64_t memory_lower_bound(const Plan& plan);

}  // namespace foreshard::plan
