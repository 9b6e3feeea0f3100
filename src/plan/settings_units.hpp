#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/wrap.hpp"

namespace foreshard::plan {

/// Declares units.*.
void add_unit_keys(Config& config);

struct Units {
  Wrap wrap;
  PartialSteps partial;
};

/// Appends to `problems` what cannot be read; whether it fits the model is another question (`plan::problems`).
Units read_units(const Config& config, std::vector<std::string>& problems);

}  // namespace foreshard::plan
