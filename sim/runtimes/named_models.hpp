#pragma once
#include <map>
#include <string>

#include "sim/runtimes/eager_model.hpp"

namespace foreshard::sim::torch {

/// Models by the names that tests/golden/make_fsdp_memory.py knows, from their public configurations; gpt2 and opt with
/// 4,096 positions, for long sequences.
const std::map<std::string, Model>& named_models();

}  // namespace foreshard::sim::torch
