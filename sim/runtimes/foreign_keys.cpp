#include "sim/runtimes/foreign_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace foreshard::sim::torch {
namespace {

/// Beginnings of keys, the more special ones first, and of the profiles that have them.
struct Owner {
  std::string_view key, profile;
  const char* profiles;
};
constexpr Owner owners[] = {{"torch.bucket_cap_mb", "pytorch-ddp", "pytorch-ddp"},
                            {"torch.gradient_as_bucket_view", "pytorch-ddp", "pytorch-ddp"},
                            {"torch.", "pytorch-", "pytorch-* or deepspeed-*"},
                            {"deepspeed.", "deepspeed-", "deepspeed-zero1, -zero2 or -zero3"}};

const Owner* owner_of(std::string_view key) {
  for (const Owner& owner : owners)
    if (key.starts_with(owner.key)) return &owner;
  return nullptr;
}

/// DeepSpeed runs on PyTorch.
bool has(std::string_view profile, const Owner& owner) {
  return profile.starts_with(owner.profile) || (owner.key == "torch." && profile.starts_with("deepspeed-"));
}

}  // namespace

void refuse_foreign_keys(const Config& config, std::span<const std::string_view> profiles) {
  constexpr std::string_view start = "override: ";
  const std::string names = fmt::format("{}", fmt::join(profiles, ", "));
  for (const std::string& line : config.overrides()) {
    if (!line.starts_with(start) || !line.ends_with("(from flag)")) continue;
    const std::string key_and_value = line.substr(start.size());
    const Owner* owner = owner_of(key_and_value);
    if (!owner || std::ranges::any_of(profiles, [&](std::string_view p) { return has(p, *owner); })) continue;
    throw InputError(ExitCode::usage,
                     fmt::format("{}: has no effect with runtime.profile = {}\n  leave it out, or set runtime.profile "
                                 "to {}",
                                 key_and_value, names.empty() ? "our own" : names, owner->profiles));
  }
}

}  // namespace foreshard::sim::torch
