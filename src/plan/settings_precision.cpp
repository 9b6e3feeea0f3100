#include "plan/settings_precision.hpp"

namespace foreshard::plan {
namespace {

std::optional<DType> read_type(const Config& config, std::string_view key) {
  return find_dtype(config.get<std::string>(key));
}

}  // namespace

std::optional<DType> find_dtype(std::string_view name) {
  if (name == "fp32") return DType::f32;
  if (name == "bf16") return DType::bf16;
  if (name == "fp16") return DType::f16;
  return std::nullopt;
}

void add_precision_keys(Config& config) {
  config.add("precision.param", "fp32", "type that parameters are gathered in and blocks compute in; shards are fp32",
             {.choices = {"fp32", "bf16", "fp16"}});
  config.add("precision.reduce", "fp32", "type of gradients on their way to reduction; they are summed in fp32",
             {.choices = {"fp32", "bf16", "fp16"}});
  config.add("precision.output", "param", "type of what a unit hands to the next one; param = precision.param",
             {.choices = {"param", "fp32", "bf16", "fp16"}});
}

Precision read_precision(const Config& config) {
  return {.parameters = read_type(config, "precision.param"),
          .reduction = read_type(config, "precision.reduce"),
          .output = read_type(config, "precision.output")};
}

}  // namespace foreshard::plan
