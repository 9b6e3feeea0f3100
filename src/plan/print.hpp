#pragma once
#include <string>

#include "plan/plan.hpp"

namespace foreshard::plan {

/// The step's order of issue around each unit's compute: AG:u, RS:u, AR:u (collectives), F:u and B:u (the first op of
/// unit u's forward or backward; not of the root), |micro0 … |step. Units are root, u0, u1, …
std::string order_text(const Plan& plan);

/// Every op on a line: id, segment, lane, kind, unit, sizes, bytes and offsets of its operands, what it waits for.
std::string plan_text(const Plan& plan);

}  // namespace foreshard::plan
