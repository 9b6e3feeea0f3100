#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {

/// What does not fit, each a line for the user.
using Problems = std::vector<std::string>;

/// The parallel.* keys: which mesh, and how the step is scheduled on it.
struct Parallel {
  Mesh mesh;
  ScheduleOptions schedule;  ///< all but micro_batches
};

void add_parallel_keys(Config& config);

/// Appends to `problems` what does not fit together or to `world_size` ranks.
Parallel read_parallel(const Config& config, int world_size, Problems& problems);

}  // namespace foreshard::plan
