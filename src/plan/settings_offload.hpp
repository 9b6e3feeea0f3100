#pragma once
#include "base/config.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {

/// Declares offload.*.
void add_offload_keys(Config& config);

Offload read_offload(const Config& config);

}  // namespace foreshard::plan
