#include "plan/settings_precision.hpp"

#include <fmt/format.h>

namespace foreshard::plan {
namespace {

std::optional<DType> read_type(const Config& config, std::string_view key) {
  return find_dtype(config.get<std::string>(key));
}

/// A parameter's gradient is computed where it is reduced from: in the parameter's type, or in fp32.
void check_reduction(const Config& config, std::vector<std::string>& problems) {
  const auto parameter = config.get<std::string>("precision.param");
  const auto reduction = config.get<std::string>("precision.reduce");
  if (reduction == "fp32" || reduction == parameter) return;
  problems.push_back(
      fmt::format("precision.reduce = {} with precision.param = {}: gradients are in precision.param or in fp32 when "
                  "they are reduced; expected precision.reduce = {}",
                  reduction, parameter, parameter == "fp32" ? "fp32" : parameter + " or fp32"));
}

}  // namespace

std::optional<DType> find_dtype(std::string_view name) {
  if (name == "fp32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  if (name == "fp16") return DType::f16;
  return std::nullopt;
}

void add_precision_keys(Config& config) {
  config.add("precision.param", "fp32", "type that parameters are gathered in and blocks compute in",
             {.choices = {"fp32", "bf16", "fp16"}});
  config.add("precision.master", "fp32",
             "type that shards of parameters are kept and updated in; bf16, with precision.param = bf16, keeps no fp32 "
             "copy of them; moments are fp32",
             {.choices = {"fp32", "bf16"}});
  config.add("precision.reduce", "fp32",
             "type of gradients on their way to reduction, precision.param or fp32; they are summed in fp32",
             {.choices = {"fp32", "bf16", "fp16"}});
  config.add("precision.output", "param", "type of what a unit hands to the next one; param = precision.param",
             {.choices = {"param", "fp32", "bf16", "fp16"}});
}

Precision read_precision(const Config& config, std::vector<std::string>& problems) {
  check_reduction(config, problems);
  return {.parameters = read_type(config, "precision.param"),
          .reduction = read_type(config, "precision.reduce"),
          .output = read_type(config, "precision.output")};
}

std::optional<DType> read_master(const Config& config, std::vector<std::string>& problems) {
  const auto parameter = config.get<std::string>("precision.param");
  if (config.get<std::string>("precision.master") == "fp32") return std::nullopt;
  if (parameter != "bf16")
    problems.push_back(
        fmt::format("precision.master = bf16 with precision.param = {}: what is kept in bf16 is gathered and computed "
                    "with as it is; expected precision.param = bf16",
                    parameter));
  return DType::bf16;
}

}  // namespace foreshard::plan
