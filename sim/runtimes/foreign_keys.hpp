#pragma once
#include <span>
#include <string_view>

#include "base/config.hpp"

namespace foreshard::sim::torch {

/// A flag of torch.* or deepspeed.* that none of these runtime profiles has would be passed over in silence: throws
/// InputError(usage) that names it, its value and the runtimes that have it. In files, which serve several runtimes, it
/// may stand.
void refuse_foreign_keys(const Config& config, std::span<const std::string_view> profiles);

}  // namespace foreshard::sim::torch
