#pragma once
#include <functional>
#include <optional>

#include "sim/machine.hpp"

namespace foreshard::sim::cost {

/// A kernel on a GPU as a table has it.
struct KernelCall {
  OpKind kind{};
  bool accumulate = false;
  DType dtype = DType::f32;  ///< of its first operand
  Sizes sizes;
};

/// Seconds of a kernel on a GPU by what was measured of its kind in its type: formula(its sizes) · r, where r, which is
/// measured / formula, is interpolated among the sizes that were measured (interpolate.hpp). So it is exact at these,
/// and between them it has the formula's waves and starts. Tables with the same `accumulate` are preferred. Nothing if
/// the kind was not measured in this type, or if its work is not within a factor of two of what was. `source` receives
/// that of the table.
std::optional<double> measured_seconds(const Machine& machine, const KernelCall& call,
                                       const std::function<double(const Sizes&)>& formula, std::string* source);

/// Measured seconds of a collective of the kind, `ranks` on `nodes`, or null: its table.
const CollectiveTable* measured_collective(const Machine& machine, OpKind kind, int ranks, int nodes);

}  // namespace foreshard::sim::cost
