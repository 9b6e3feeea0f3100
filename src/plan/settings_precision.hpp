#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {

/// Declares precision.*.
void add_precision_keys(Config& config);

/// A type as users name it: fp32, bf16, fp16.
std::optional<DType> find_dtype(std::string_view name);

/// Appends to `problems` types that do not go together.
Precision read_precision(const Config& config, std::vector<std::string>& problems);

/// ScheduleOptions::master. Appends to `problems` where it does not go with precision.param.
std::optional<DType> read_master(const Config& config, std::vector<std::string>& problems);

}  // namespace foreshard::plan
