#include "plan/settings_recompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"

namespace foreshard::plan {
namespace {

/// Forward operators inside units, by the names users give them.
constexpr std::array recomputable{OpKind::layer_norm, OpKind::rms_norm, OpKind::linear, OpKind::attention,
                                  OpKind::rotary,     OpKind::gelu,     OpKind::swiglu, OpKind::add,
                                  OpKind::dropout,    OpKind::relu,     OpKind::geglu,  OpKind::gelu_exact};

std::vector<std::string_view> recomputable_names() {
  std::vector<std::string_view> names;
  for (const OpKind kind : recomputable) names.push_back(model::name_of(kind));
  return names;
}

/// Attention is of every kind.
void add_kind(OpKind kind, std::vector<OpKind>& kinds) {
  kinds.push_back(kind);
  if (kind == OpKind::attention) kinds.insert(kinds.end(), {OpKind::full_attention, OpKind::reattention});
}

std::vector<OpKind> read_kinds(const std::string& list, std::vector<std::string>& problems) {
  std::vector<OpKind> kinds;
  for (const std::string_view name : split(list, ',')) {
    const auto kind = model::find_op_kind(trimmed(name));
    const auto names = recomputable_names();
    if (kind && std::ranges::find(recomputable, *kind) != recomputable.end())
      add_kind(*kind, kinds);
    else
      problems.push_back(
          fmt::format("activation_checkpoint.ops = {}: no forward operator of a block is called '{}'; "
                      "expected some of {}.{}",
                      list, name, fmt::join(names, ", "), did_you_mean(name, std::span(names))));
  }
  return kinds;
}

}  // namespace

void add_recompute_keys(Config& config) {
  config.add("activation_checkpoint.mode", "none",
             "what backward computes again instead of keeping it: nothing, some operators, or whole blocks",
             {.choices = {"none", "selective", "full"}});
  config.add("activation_checkpoint.ops", "attention",
             fmt::format("selective: operators that are computed again, of {}", fmt::join(recomputable_names(), ", ")));
  config.add("activation_checkpoint.every", 1, "only in every n-th block", {.unit = "blocks", .min = 1});
}

Recompute read_recompute(const Config& config, std::vector<std::string>& problems) {
  Recompute recompute{.every = config.get<int>("activation_checkpoint.every")};
  const auto mode = config.get<std::string>("activation_checkpoint.mode");
  if (mode == "full") recompute.mode = Recompute::Mode::full;
  if (mode != "selective") return recompute;
  recompute.mode = Recompute::Mode::selective;
  recompute.kinds = read_kinds(config.get<std::string>("activation_checkpoint.ops"), problems);
  return recompute;
}

}  // namespace foreshard::plan
