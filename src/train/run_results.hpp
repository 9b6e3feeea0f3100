#pragma once
#include "plan/plan.hpp"
#include "trace/tables.hpp"
#include "train/run_folder.hpp"

namespace foreshard::train {

/// The facts of run.json that foreshard-plan predicts under the same names: of the plan, and as measured.
void add_results(RunRecord& record, const plan::Plan& plan, const trace::Summary& measured);

}  // namespace foreshard::train
