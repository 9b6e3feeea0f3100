#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/settings.hpp"
#include "sim/allocator/phase_memory.hpp"
#include "sim/allocator/settings.hpp"
#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {

/// What a user asks to be predicted of PyTorch.
struct TorchJob {
  TorchRun run;
  Software software;
  allocator::Settings allocator;
  allocator::Loading loading = allocator::Loading::sharded;  ///< FSDP
  DType load_type = DType::f32;                              ///< of a model that is loaded whole
  std::optional<allocator::Saving> saving;                   ///< FSDP: of a checkpoint behind the steady step, if any
  double parameters = 0;
  std::vector<std::string> notes;  ///< keys that are read otherwise than by our own runtimes, a line each
};

/// Declares torch.* and deepspeed.*: what these have that our runtimes have not.
void add_torch_keys(Config& config);

/// The run that the plan's keys, torch.* and deepspeed.* describe, by `runtime.profile` (runtime_names.hpp). Throws one
/// InputError(usage) that names every key which asks for what the runtime has not, or what is not modelled.
TorchJob read_torch_job(const Config& config, const plan::Settings& settings);

}  // namespace foreshard::sim::torch
