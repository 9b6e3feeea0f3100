#include "sim/closed_form/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"
#include "sim/device.hpp"
#include "sim/gpu_rates.hpp"

namespace foreshard::embedded {
extern const std::string_view closed_form_profile;
}

namespace foreshard::sim::closed_form {
namespace {

using Json = nlohmann::json;

Gpu gpu_of(const std::string& name) {
  const Device device = read_device(name);
  const double links = device.link_bytes_per_s.value;
  return {.name = catalogue_name_of(name),
          .generation = device.architecture,
          .half_flops = rates_of(device).half_flops,
          .fp8_flops = device.fp8_flops.value,
          .memory_bytes_per_s = device.memory_bytes_per_s.value,
          .memory_bytes = device.memory_bytes.value,
          .best_products = device.matmul_flops.value / rates_of(device).half_flops,
          .multiprocessors = device.multiprocessors,
          .node_link_bytes_per_s = links > 0 ? links : pcie_bytes_per_s(device)};
}

/// "A100" of 40 GB is printed as "A100 40GB" too, which tells it from the one of 80 GB, which "A100" alone is.
std::string with_memory(const std::string& name, double memory_gb) {
  for (const double gb : {memory_gb, 80.0})
    if (const std::string longer = fmt::format("{} {:.0f}GB", name, gb); catalogue_name_of(longer) != longer)
      return longer;
  return name;
}

template <class Map>
std::vector<std::string> names_of(const Map& map) {
  std::vector<std::string> names;
  for (const auto& [name, value] : map) names.push_back(name);
  return names;
}

}  // namespace

Profile::Profile() {
  const Json constants = Json::parse(embedded::closed_form_profile);
  for (const auto& [name, constant] : constants.items()) {
    values_[name] = constant.at("value");
    if (constant.at("source").get<std::string>().find("fitted to") != std::string::npos) ++fitted_;
  }
}

void Profile::override_from(const std::string& path) {
  const Json given = Json::parse(read_whole({path, "", "expected a JSON object of constants"}), nullptr, false);
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
  const std::string asked = fmt::format("{} {}", name, memory_gb);
  if (const auto found = gpus_.find(asked); found != gpus_.end()) return found->second;
  return gpus_[asked] = gpu_of(with_memory(name, memory_gb));
}

}  // namespace foreshard::sim::closed_form
