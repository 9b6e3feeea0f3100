#include "sim/closed_form/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/text.hpp"

namespace foreshard::embedded {
extern const std::string_view closed_form_profile, closed_form_gpus;
}

namespace foreshard::sim::closed_form {
namespace {

using Json = nlohmann::json;

Gpu gpu_of(const std::string& name, const Json& json) {
  return {.name = name,
          .generation = json.at("generation"),
          .half_flops = json.at("half_tflops").get<double>() * 1e12,
          .fp8_flops = json.at("fp8_tflops").get<double>() * 1e12,
          .memory_bytes_per_s = json.at("memory_gb_per_s").get<double>() * 1e9,
          .memory_bytes = json.at("memory_mib").get<double>() * 1048576,
          .multiprocessors = json.at("multiprocessors"),
          .node_link_bytes_per_s = json.at("node_link_gb_per_s").get<double>() * 1e9};
}

template <class Map>
std::vector<std::string> names_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

}  // namespace

Profile::Profile() {
  const Json constants = Json::parse(embedded::closed_form_profile), gpus = Json::parse(embedded::closed_form_gpus);
  for (const auto& [name, constant] : constants.items()) values_[name] = constant.at("value");
  for (const auto& [name, gpu] : gpus.at("gpus").items()) gpus_[name] = gpu_of(name, gpu);
  for (const auto& alias : gpus.at("printed_names"))
    aliases_.push_back({alias.at("printed"), alias.at("gpu"), alias.value("memory_gb", 0.0)});
}

void Profile::override_from(const std::string& path) {
  std::ifstream file(path);
  const Json given = Json::parse(file, nullptr, false);
  if (!given.is_object())
    throw InputError(ExitCode::bad_input, fmt::format("{}: cannot be read as a JSON object of constants", path));
  for (const auto& [name, value] : given.items()) {
    const auto found = values_.find(name);
    const auto known = names_of(values_);
    if (found == values_.end() || !value.is_number())
      throw InputError(ExitCode::bad_input, fmt::format("{}: '{}' is not a constant with a number.{}", path, name,
                                                        did_you_mean(name, std::span(known))));
    found->second = value;
  }
}

double Profile::value(const std::vector<std::string>& names) const {
  for (const std::string& name : names)
    if (const auto found = values_.find(name); found != values_.end()) return found->second;
  FORESHARD_EXPECT(false, "no constant is called " + names.front());
}

const Gpu& Profile::gpu(const std::string& name, double memory_gb) const {
  if (const auto found = gpus_.find(name); found != gpus_.end()) return found->second;
  const auto is_meant = [&](const Alias& alias, bool any_memory) {
    return alias.printed == name && (alias.memory_gb == memory_gb || alias.memory_gb == 0 || any_memory);
  };
  for (const bool any_memory : {false, true})
    for (const Alias& alias : aliases_)
      if (is_meant(alias, any_memory)) return gpus_.at(alias.gpu);
  const auto known = names_of(gpus_);
  throw InputError(ExitCode::usage,
                   fmt::format("no GPU is called '{}'.{}", name, did_you_mean(name, std::span(known))));
}

}  // namespace foreshard::sim::closed_form
