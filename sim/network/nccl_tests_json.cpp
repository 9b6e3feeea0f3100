// The JSON that nccl-tests writes with -J.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/network/nccl_tests_rows.hpp"

namespace foreshard::sim::network {
namespace {

using Json = nlohmann::json;

const Json* find(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

double number(const Json& json, const char* key, double otherwise) {
  const Json* value = find(json, key);
  return value != nullptr && value->is_number() ? value->get<double>() : otherwise;
}

std::string text(const Json& json, const char* key) {
  const Json* value = find(json, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : "";
}

void read_devices(const Json& json, RunBuilder& into) {
  const Json* config = find(json, "config");
  const Json* devices = config != nullptr ? find(*config, "devices") : nullptr;
  if (devices == nullptr) devices = find(json, "devices");
  if (devices == nullptr || !devices->is_array()) return;
  for (const Json& device : *devices)
    into.device(static_cast<int>(number(device, "rank", 0)), static_cast<int>(number(device, "group", 0)),
                text(device, "hostname"), text(device, "device_info"));
}

void read_result(const Json& result, std::size_t index, RunBuilder& into) {
  const Json* measured = find(result, "out_of_place");
  if (measured == nullptr) measured = find(result, "in_place");
  const auto where = fmt::format("results[{}]", index);
  if (measured == nullptr || !measured->is_object())
    into.refuse(where, "neither out_of_place nor in_place has results");
  if (const double wrong = number(*measured, "nwrong", 0); wrong > 0)
    into.refuse(where, fmt::format("{} values were wrong; expected a run without errors", wrong));
  const double us = number(*measured, "time", number(*measured, "cpu_time", -1));
  if (find(result, "size") == nullptr || us < 0) into.refuse(where, "no size or no time; expected both as numbers");
  into.row(number(result, "size", 0), us, number(*measured, "alg_bw", 0), number(*measured, "bus_bw", 0),
           text(result, "redop"));
}

}  // namespace

void read_json(std::string_view all, RunBuilder& into) {
  const Json json = Json::parse(all, nullptr, false);
  if (!json.is_object()) into.refuse("", "not JSON with an object, or cut short");
  if (const Json* args = find(json, "args");
      args != nullptr && args->is_array() && !args->empty() && (*args)[0].is_string())
    into.program((*args)[0].get<std::string>());
  if (const double code = number(json, "nccl_version", 0); code > 0) into.version_code(static_cast<int>(code));
  read_devices(json, into);
  const Json* results = find(json, "results");
  if (results == nullptr || !results->is_array()) into.refuse("results", "missing; expected an array");
  for (std::size_t i = 0; i < results->size(); ++i) read_result((*results)[i], i, into);
}

}  // namespace foreshard::sim::network
