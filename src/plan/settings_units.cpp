#include "plan/settings_units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "base/text.hpp"

namespace foreshard::plan {
namespace {

using Problems = std::vector<std::string>;

struct PolicyName {
  std::string_view name;
  Wrap::Policy policy;
  enum class Argument : std::uint8_t { none, count, names } argument;
};
using Argument = PolicyName::Argument;
constexpr PolicyName policies[] = {
    {"block", Wrap::Policy::block, Argument::none}, {"blocks", Wrap::Policy::blocks, Argument::count},
    {"size", Wrap::Policy::size, Argument::count},  {"class", Wrap::Policy::classes, Argument::names},
    {"list", Wrap::Policy::list, Argument::names},  {"none", Wrap::Policy::none, Argument::none}};
constexpr std::string_view policy_forms = "block, blocks:N, size:N, class:NAME,…, list:MODULE,… or none";

/// What a unit may do instead of the run's parallel.strategy.
struct Choice {
  std::string_view strategy;
  Keep keep;
  bool replicated;
};
constexpr Choice choices[] = {{"full_shard", Keep::visit, false},
                              {"shard_grad_op", Keep::micro_batch, false},
                              {"zero1", Keep::step, false},
                              {"no_shard", Keep::step, true}};

template <class Entries, class Member>
std::vector<std::string_view> names_of(const Entries& entries, Member member) {
  std::vector<std::string_view> names;
  for (const auto& entry : entries) names.push_back(entry.*member);
  return names;
}

/// The parts of a list that are not empty.
std::vector<std::string> words(std::string_view text, char separator) {
  std::vector<std::string> found;
  for (const std::string_view word : split(text, separator))
    if (!trimmed(word).empty()) found.emplace_back(trimmed(word));
  return found;
}

std::int64_t count_of(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  return error == std::errc() && end == text.data() + text.size() ? count : 0;
}

std::string policy_problem(std::string_view value, std::string_view why) {
  return fmt::format("units.policy = {}: {}; expected {}", value, why, policy_forms);
}

void read_argument(const std::string& value, std::string_view argument, Argument expected, Wrap& wrap,
                   Problems& problems) {
  if (expected == Argument::count) {
    if ((wrap.count = count_of(argument)) < 1)
      problems.push_back(policy_problem(value, fmt::format("'{}' is not a number of at least 1", argument)));
  } else if (expected == Argument::names) {
    if ((wrap.names = words(argument, ',')).empty()) problems.push_back(policy_problem(value, "no names"));
  } else if (!argument.empty()) {
    problems.push_back(policy_problem(value, fmt::format("'{}' has no meaning here", argument)));
  }
}

void read_policy(const Config& config, Wrap& wrap, Problems& problems) {
  const auto value = config.get<std::string>("units.policy");
  const std::string_view name = std::string_view(value).substr(0, value.find(':'));
  const auto found = std::ranges::find(policies, name, &PolicyName::name);
  if (found == std::end(policies)) {
    const auto names = names_of(policies, &PolicyName::name);
    problems.push_back(policy_problem(value, "unknown") + did_you_mean(name, std::span(names)));
    return;
  }
  wrap.policy = found->policy;
  read_argument(value, std::string_view(value).substr(std::min(value.size(), name.size() + 1)), found->argument, wrap,
                problems);
}

void read_override(const std::string& text, Wrap& wrap, Problems& problems) {
  constexpr std::string_view separator = ":strategy=";
  const std::size_t at = text.find(separator);
  const auto strategies = names_of(choices, &Choice::strategy);
  const std::string_view strategy =
      at == std::string::npos ? std::string_view() : trimmed(std::string_view(text).substr(at + separator.size()));
  const auto found = std::ranges::find(choices, strategy, &Choice::strategy);
  if (found != std::end(choices)) {
    wrap.overrides.push_back({std::string(trimmed(text.substr(0, at))), found->keep, found->replicated});
    return;
  }
  problems.push_back(
      fmt::format("units.override = {}: expected GLOB:strategy=NAME, separated by ';', with NAME one of {}.{}", text,
                  fmt::join(strategies, ", "), did_you_mean(strategy, std::span(strategies))));
}

}  // namespace

void add_unit_keys(Config& config) {
  config.add("units.policy", "block",
             fmt::format("what is gathered and reduced together: {}; leftovers belong to the root", policy_forms));
  config.add("units.frozen", "", "parameters that are not trained: globs of names, separated by commas");
  config.add("units.frozen_steps", 0, "units.frozen are frozen for so many steps and trained from then on; 0 = always",
             {.unit = "steps", .min = 0});
  config.add(
      "units.skip", "",
      "blocks that some steps leave out, what goes into them coming out unchanged: globs of modules such as h.3, "
      "separated by commas");
  config.add("units.skip_every", 2, "units.skip are left out of every n-th step", {.unit = "steps", .min = 2});
  config.add("units.ignored", "",
             "parameters that are not sharded but held whole by every rank: globs of names, separated by commas");
  config.add(
      "units.override", "",
      fmt::format("units that do otherwise: GLOB:strategy=NAME;… with a glob of unit or parameter names, NAME one "
                  "of {}",
                  fmt::join(names_of(choices, &Choice::strategy), ", ")));
}

Units read_units(const Config& config, Problems& problems) {
  Units units;
  Wrap& wrap = units.wrap;
  read_policy(config, wrap, problems);
  wrap.frozen = words(config.get<std::string>("units.frozen"), ',');
  wrap.ignored = words(config.get<std::string>("units.ignored"), ',');
  for (const std::string& text : words(config.get<std::string>("units.override"), ';'))
    read_override(text, wrap, problems);
  units.partial = {.blocks = words(config.get<std::string>("units.skip"), ','),
                   .every = config.get<std::int64_t>("units.skip_every"),
                   .frozen_steps = config.get<std::int64_t>("units.frozen_steps")};
  if (units.partial.frozen_steps > 0) std::swap(units.partial.frozen, wrap.frozen);
  return units;
}

}  // namespace foreshard::plan
