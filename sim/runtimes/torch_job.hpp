#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/settings.hpp"
#include "sim/allocator/settings.hpp"
#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {

/// What a user asks to be predicted of PyTorch.
struct TorchJob {
  TorchRun run;
  Software software;
  allocator::Settings allocator;
  double parameters = 0;
  std::vector<std::string> notes;  ///< keys that are read otherwise than by our own runtimes, a line each
};

/// Declares torch.*: what PyTorch has that our runtimes have not.
void add_torch_keys(Config& config);

/// The run that the plan's keys and torch.* describe, by `runtime.profile` = pytorch-fsdp1 or pytorch-fsdp2. Throws one
/// InputError(usage) that names every key which asks for what PyTorch's FSDP has not, or what is not modelled.
TorchJob read_torch_job(const Config& config, const plan::Settings& settings);

}  // namespace foreshard::sim::torch
