#pragma once
#include <string>
#include <vector>

#include "base/config.hpp"
#include "plan/build.hpp"

namespace foreshard::plan {

/// Declares the keys of the optimizer that decide a plan, since moments are buffers: optimizer.name, .momentum; and
/// train.norm_type.
void add_optimizer_keys(Config& config);

/// The update's kind. Adds to `problems` what is wrong with the name: optimizers that look at whole tensors are refused
/// with the reason.
OpKind read_optimizer(const Config& config, std::vector<std::string>& problems);

/// The power of the norm that gradients are clipped by.
float read_norm_power(const Config& config);

}  // namespace foreshard::plan
