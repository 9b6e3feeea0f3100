#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {

/// Declares activation_checkpoint.*.
void add_recompute_keys(Config& config);

/// Appends to `problems` what does not fit.
Recompute read_recompute(const Config& config, std::vector<std::string>& problems);

}  // namespace foreshard::plan
