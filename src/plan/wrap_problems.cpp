// What does not fit a model in the way its parameters are to be grouped.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/glob.hpp"
#include "base/text.hpp"
#include "plan/module_path.hpp"
#include "plan/wrap.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using Names = std::vector<std::string>;

/// Modules that own parameters, and all around them; with `classes` their classes.
Names known_modules(const Graph& graph, bool classes) {
  std::set<std::string_view> found;
  for (const model::Operator& op : graph.operators)
    for (const model::TensorId id : op.inputs)
      if (id.valid() && graph[id].role == model::Role::parameter)
        for (std::string_view path = graph.modules[op.module.value]; !path.empty(); path = parent_of(path))
          found.insert(classes ? class_of(path) : path);
  return Names(found.begin(), found.end());
}

void check_modules(const Graph& graph, const Wrap& how, Names& problems) {
  const bool classes = how.policy == Wrap::Policy::classes;
  if (!classes && how.policy != Wrap::Policy::list) return;
  const Names known = known_modules(graph, classes);
  for (const std::string& name : how.names)
    if (std::ranges::find(known, name) == known.end())
      problems.push_back(fmt::format("units.policy: no module with parameters {} '{}'.{}{}",
                                     classes ? "is of class" : "is called", name, did_you_mean(name, std::span(known)),
                                     classes ? fmt::format(" Classes: {}", fmt::join(known, ", ")) : ""));
}

Names parameter_names(const Graph& graph) {
  Names names;
  for (const model::Parameter& parameter : graph.parameters) names.push_back(parameter.name);
  return names;
}

Names block_names(const Graph& graph) {
  Names names;
  for (const std::string& module : graph.modules)
    if (class_of(module) == "block") names.push_back(module);
  return names;
}

Names unit_names(const Graph& graph) {
  Names names;
  for (const model::Unit& unit : graph.units) names.push_back(unit.name);
  return names;
}

void check_glob(std::string_view key, const std::string& glob, const Names& names, Names& problems) {
  if (std::ranges::any_of(names, [&](const std::string& name) { return matches_glob(glob, name); })) return;
  problems.push_back(fmt::format("{}: '{}' matches nothing; expected names such as {} or {}, with * and ?.{}", key,
                                 glob, names.front(), names.back(), did_you_mean(glob, std::span(names))));
}

/// Every kind of step trains something.
void check_trained(const Graph& wrapped, const Wrap& how, const PartialSteps& steps, Names& problems) {
  for (const LeftOut& what : steps.kinds()) {
    if (std::ranges::any_of(leave_out(wrapped, what).parameters, &model::Parameter::has_gradient)) continue;
    return problems.push_back(
        fmt::format("units.frozen = {}: nothing is left to train{}; freeze fewer of the {} parameters",
                    fmt::join(how.frozen.empty() ? what.frozen : how.frozen, ","),
                    what == LeftOut{} ? "" : " in steps that leave something out", wrapped.parameters.size()));
  }
}

}  // namespace

Names problems(const Graph& forward, const Wrap& how, const PartialSteps& steps) {
  Names problems, names = parameter_names(forward);
  check_modules(forward, how, problems);
  for (const std::string& glob : how.frozen) check_glob("units.frozen", glob, names, problems);
  for (const std::string& glob : steps.frozen) check_glob("units.frozen", glob, names, problems);
  for (const std::string& glob : how.ignored) check_glob("units.ignored", glob, names, problems);
  for (const std::string& glob : steps.blocks) check_glob("units.skip", glob, block_names(forward), problems);
  if (!problems.empty()) return problems;
  const Graph wrapped = wrap(forward, how);
  check_trained(wrapped, how, steps, problems);
  for (std::string& unit : unit_names(wrapped)) names.push_back(std::move(unit));
  for (const Wrap::Override& override : how.overrides) check_glob("units.override", override.glob, names, problems);
  return problems;
}

}  // namespace foreshard::plan
