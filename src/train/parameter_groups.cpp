#include "train/parameter_groups.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "base/text.hpp"

namespace foreshard::train {
namespace {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(trimmed(text.substr(0, end)));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

[[noreturn]] void fail(const std::string& group, const std::string& what) {
  throw InputError(ExitCode::usage,
                   fmt::format("optimizer.groups: in `{}` {}; expected GLOB[,GLOB…]:lr_scale=X,weight_decay=Y, groups "
                               "separated by `;`, for example `*.bias,*.ln_*:weight_decay=0; wte.*:lr_scale=0.1`",
                               group, what));
}

double number_of(const std::string& group, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || parsed != end || !(value >= 0) || !std::isfinite(value))
    fail(group, fmt::format("`{}` is not a number of at least 0", text));
  return value;
}

void read_setting(const std::string& group, const std::string& setting, ParameterGroup& into) {
  const std::size_t equals = setting.find('=');
  const std::string key(trimmed(std::string_view(setting).substr(0, equals)));
  if (equals == std::string::npos) fail(group, fmt::format("`{}` is not KEY=VALUE", setting));
  const double value = number_of(group, std::string(trimmed(std::string_view(setting).substr(equals + 1))));
  constexpr std::string_view keys[] = {"lr_scale", "weight_decay"};
  if (key == keys[0]) {
    into.learning_rate_scale = value;
  } else if (key == keys[1]) {
    into.weight_decay = value;
  } else {
    fail(group, fmt::format("`{}` is unknown.{}", key, did_you_mean(key, std::span<const std::string_view>(keys))));
  }
}

ParameterGroup read_group(const std::string& text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) fail(text, "there is no `:`");
  ParameterGroup group{.patterns = split(std::string_view(text).substr(0, colon), ',')};
  if (std::ranges::count(group.patterns, "") > 0) fail(text, "a pattern is empty");
  for (const std::string& setting : split(std::string_view(text).substr(colon + 1), ','))
    read_setting(text, setting, group);
  return group;
}

bool matches(const std::string& pattern, const model::Parameter& parameter) {
  return fnmatch(pattern.c_str(), parameter.name.c_str(), 0) == 0;
}

void expect_match(const std::string& pattern, const model::Graph& graph) {
  if (std::ranges::any_of(graph.parameters, [&](const auto& parameter) { return matches(pattern, parameter); })) return;
  std::vector<std::string> names;
  for (const model::Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  throw InputError(ExitCode::usage, fmt::format("optimizer.groups: `{}` matches no parameter of the model;{} names are "
                                                "such as {} and {}",
                                                pattern, did_you_mean(pattern, std::span<const std::string>(names)),
                                                names.front(), names.back()));
}

exec::ParameterRule rule_of(const model::Parameter& parameter, const std::vector<ParameterGroup>& groups,
                            double weight_decay) {
  const double usual = parameter.shape.size() >= 2 ? weight_decay : 0;
  for (const ParameterGroup& group : groups)
    for (const std::string& pattern : group.patterns)
      if (matches(pattern, parameter)) return {group.learning_rate_scale, group.weight_decay.value_or(usual)};
  return {1, usual};
}

}  // namespace

std::vector<ParameterGroup> parse_parameter_groups(const std::string& text) {
  std::vector<ParameterGroup> groups;
  for (const std::string& group : split(text, ';'))
    if (!group.empty()) groups.push_back(read_group(group));
  return groups;
}

std::vector<exec::ParameterRule> parameter_rules(const model::Graph& graph, const std::vector<ParameterGroup>& groups,
                                                 double weight_decay) {
  for (const ParameterGroup& group : groups)
    for (const std::string& pattern : group.patterns) expect_match(pattern, graph);
  std::vector<exec::ParameterRule> rules;
  for (const model::Parameter& parameter : graph.parameters) rules.push_back(rule_of(parameter, groups, weight_decay));
  return rules;
}

}  // namespace foreshard::train
