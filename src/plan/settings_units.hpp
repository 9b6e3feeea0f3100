#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/wrap.hpp"

namespace foreshard::plan {

/// Declares units.*.
void add_unit_keys(Config& config);

/// Appends to `problems` what cannot be read; whether it fits the model is another question (`plan::problems`).
Wrap read_units(const Config& config, std::vector<std::string>& problems);

}  // namespace foreshard::plan
