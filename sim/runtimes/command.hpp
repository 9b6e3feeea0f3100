#pragma once
#include <string>

#include "base/config.hpp"

namespace foreshard::sim::torch {

/// Whether `runtime.profile` names a runtime of PyTorch.
bool is_asked_for(const Config& config);

/// foreshard-plan for PyTorch: prints the report or, by --json and --order, what they ask for; writes --trace. Throws
/// InputError: usage for keys that do not go together, infeasible, behind the report, for a run that does not fit.
void run_command(const Config& config, const std::string& command_line);

}  // namespace foreshard::sim::torch
