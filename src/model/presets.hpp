#pragma once
#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/error.hpp"

namespace foreshard::model {

/// A configuration of a family, by name.
template <class Config>
struct Preset {
  std::string_view name;
  Config config;
};

template <class Presets>
std::vector<std::string_view> names_of(const Presets& presets) {
  std::vector<std::string_view> names;
  for (const auto& preset : presets) names.push_back(preset.name);
  return names;
}

/// That there is one of this name is a contract.
template <class Presets>
auto config_of(const Presets& presets, std::string_view name) {
  for (const auto& preset : presets)
    if (preset.name == name) return preset.config;
  throw ContractError(fmt::format("no preset '{}'", name));
}

}  // namespace foreshard::model
