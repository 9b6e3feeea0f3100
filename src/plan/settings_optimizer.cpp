#include "plan/settings_optimizer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/text.hpp"

namespace foreshard::plan {
namespace {

constexpr std::string_view names[] = {"adamw", "adam", "sgd", "lion"};

/// Optimizers that users know, and what they need that a shard does not have.
struct Refusal {
  std::string_view name, needs;
};
constexpr std::string_view tensor_norms = "the norm of each whole parameter";
constexpr std::string_view tensor_shape = "rows and columns of each whole parameter";
constexpr Refusal refusals[] = {{"lamb", tensor_norms},      {"lars", tensor_norms},   {"lans", tensor_norms},
                                {"novograd", tensor_norms},  {"muon", tensor_shape},   {"shampoo", tensor_shape},
                                {"soap", tensor_shape},      {"galore", tensor_shape}, {"adafactor", tensor_shape},
                                {"adam-mini", tensor_shape}, {"sm3", tensor_shape}};

std::string problem_of(const std::string& name) {
  const auto* refusal = std::ranges::find(refusals, name, &Refusal::name);
  if (refusal == std::end(refusals))
    return fmt::format("optimizer.name = {}: unknown; expected {}.{}", name, fmt::join(names, ", "),
                       did_you_mean(name, std::span<const std::string_view>(names)));
  return fmt::format(
      "optimizer.name = {}: needs {}, but shards are cut without regard to where a parameter begins, so an optimizer "
      "must work element by element; use one of {}",
      name, refusal->needs, fmt::join(names, ", "));
}

}  // namespace

void add_optimizer_keys(Config& config) {
  config.add("optimizer.name", "adamw", "optimizer: adamw, adam (decay in the gradient), sgd or lion");
  config.add("train.norm_type", "2", "norm of the gradient that is logged, and clipped to train.max_norm",
             {.choices = {"1", "2", "3", "inf"}});
  config.add("optimizer.momentum", 0.0, "of sgd; 0 keeps no velocity", {.min = 0, .max = 1});
}

OpKind read_optimizer(const Config& config, std::vector<std::string>& problems) {
  const auto name = config.get<std::string>("optimizer.name");
  const auto momentum = config.get<double>("optimizer.momentum");
  if (momentum > 0 && name != "sgd")
    problems.push_back(
        fmt::format("optimizer.momentum = {} belongs to optimizer.name = sgd, but that is {}; for {} "
                    "set optimizer.beta1, or leave momentum at 0",
                    momentum, name, name));
  if (name == "sgd") return momentum > 0 ? OpKind::sgd_momentum : OpKind::sgd;
  if (name == "adam") return OpKind::adam;
  if (name == "lion") return OpKind::lion;
  if (name != "adamw") problems.push_back(problem_of(name));
  return OpKind::adamw;
}

float read_norm_power(const Config& config) {
  const auto type = config.get<std::string>("train.norm_type");
  return type == "inf" ? std::numeric_limits<float>::infinity() : static_cast<float>(type[0] - '0');
}

}  // namespace foreshard::plan
