#pragma once
#include <optional>
#include <string_view>

#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {

/// As `runtime.profile` has them: pytorch-ddp, deepspeed-zero1, …
std::string_view name_of(Runtime runtime);
/// None for the name of anything else.
std::optional<Runtime> runtime_named(std::string_view name);

/// The stage of DeepSpeed's ZeRO, 0 for PyTorch's own runtimes.
int zero_stage(Runtime runtime);

}  // namespace foreshard::sim::torch
