#pragma once
#include "exec/executor.hpp"

namespace foreshard::exec {

/// Issues one step of `plan` and waits for its end. The statement of what precedes what:
///
///   an op starts  after the op before it on its lane has ended, and
///                 after every op it waits for has ended:
///                 of its own segment, or a boundary point of the segment before.
///
/// Nothing else orders the step. The first segment's boundary points are met: the step before it has ended.
void run_plan(const plan::Plan& plan, Executor& executor);

}  // namespace foreshard::exec
