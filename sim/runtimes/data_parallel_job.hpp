#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/settings.hpp"
#include "sim/runtimes/torch_job.hpp"

namespace foreshard::sim::torch {

// Keys of runtimes that do not wrap units: DDP and DeepSpeed's ZeRO. Each has all ranks in one group, whatever
// parallel.* says of shards; a key of it that was given all the same is a problem.

/// Declares torch.bucket_cap_mb, torch.gradient_as_bucket_view and deepspeed.*.
void add_data_parallel_keys(Config& config);

void read_ddp(const Config& config, const plan::Settings& settings, TorchJob& job, std::vector<std::string>& problems);
void read_zero(const Config& config, const plan::Settings& settings, TorchJob& job, std::vector<std::string>& problems);

}  // namespace foreshard::sim::torch
