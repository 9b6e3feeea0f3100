#include "sim/catalogue.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/text.hpp"

namespace foreshard::sim {
namespace {

using Json = nlohmann::json;
constexpr int schema = 1;

[[noreturn]] void refuse_unknown(std::string_view folder, const std::string& name) {
  throw InputError(
      // Settings name clusters; files name all else.
      folder == "clusters" ? ExitCode::usage : ExitCode::bad_input,
      fmt::format("'{}' is not in the catalogue of {}.{} Take a name that `foreshard-plan catalogue` lists, or "
                  "the path of a file NAME.json like those of sim/machines/{}",
                  name, folder, did_you_mean(name, catalogue_names(folder)), folder));
}

}  // namespace

std::vector<std::string> catalogue_names(std::string_view folder) {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : embedded_files())
    if (file.name.starts_with(folder) && file.name.size() > folder.size() && file.name[folder.size()] == '/')
      names.emplace_back(file.name.substr(folder.size() + 1));
  std::ranges::sort(names);
  return names;
}

HardwareFile HardwareFile::open(std::string_view folder, const std::string& name) {
  if (name.ends_with(".json")) return parse(read_whole({name, "hardware file", "check the path"}), name);
  const std::string full = fmt::format("{}/{}", folder, name);
  for (const EmbeddedFile& file : embedded_files())
    if (file.name == full) return parse(file.text, full);
  refuse_unknown(folder, name);
}

HardwareFile HardwareFile::parse(std::string_view text, const std::string& origin) {
  HardwareFile file(Json::parse(text, nullptr, false), origin);
  if (!file.json_.is_object())
    throw InputError(ExitCode::bad_input,
                     fmt::format("hardware file {}: not JSON with an object, or cut short; see sim/machines", origin));
  if (file.at("schema") != schema) file.fail("schema", file.at("schema"), fmt::format("{}", schema));
  return file;
}

const Json& HardwareFile::at(const char* key) const {
  if (!json_.contains(key)) fail(key, "missing", "a value");
  return json_.at(key);
}

std::string HardwareFile::text(const char* key) const {
  if (!at(key).is_string()) fail(key, at(key), "a string");
  return at(key).get<std::string>();
}

Quantity HardwareFile::quantity(const char* key, double least) const {
  const Json& json = at(key);
  if (!json.is_object() || !json.contains("value") || !json.contains("source") || !json.at("source").is_string())
    fail(key, json, R"({"value": a number, "source": a string})");
  const Json& value = json.at("value");
  if (!value.is_number() || !(value.get<double>() >= least) || value.get<double>() > 1e18)
    fail(key, value, fmt::format("a number of at least {} and at most 1e18", least));
  return {value.get<double>(), json.at("source").get<std::string>()};
}

int HardwareFile::count(const char* key, int least) const {
  const double value = quantity(key, least).value;
  if (value != std::floor(value) || value > 1e9) fail(key, value, fmt::format("a whole number of at least {}", least));
  return static_cast<int>(value);
}

void HardwareFile::fail(const char* key, const Json& seen, const std::string& expected) const {
  throw InputError(ExitCode::bad_input,
                   fmt::format("hardware file {}: '{}' is {}, expected {}; correct it, or see sim/machines", origin_,
                               key, seen.dump(), expected));
}

}  // namespace foreshard::sim
