#pragma once
#include <optional>
#include <string>

#include "plan/plan.hpp"

namespace foreshard::trace {

/// Where two plans first differ, in the order in which it matters: mesh and micro-batches, segments, ops by position
/// (kind, unit, lane, sizes, operands, waits), then memory (buffers by size, offset, class; arena). One sentence that
/// names the place and both sides, `a` called `name_a` and `b` `name_b`. None if they are equal in all of that.
std::optional<std::string> first_divergence(const plan::Plan& a, const plan::Plan& b, const std::string& name_a,
                                            const std::string& name_b);

}  // namespace foreshard::trace
