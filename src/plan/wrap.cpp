#include "plan/wrap.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/glob.hpp"
#include "plan/module_path.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using model::Operator;
using model::Parameter;
using model::ParameterId;
using model::Role;
using model::TensorId;
using model::UnitId;

/// What becomes a unit, by a name of its own; empty: the root.
using Group = std::string;

std::vector<ParameterId> parameters_of(const Graph& graph, const Operator& op) {
  std::vector<ParameterId> found;
  for (const TensorId id : op.inputs)
    if (id.valid() && graph[id].role == Role::parameter) found.push_back(graph[id].parameter);
  return found;
}

bool any_matches(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(globs, [&](const std::string& glob) { return matches_glob(glob, name); });
}

bool contains(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// ---- which group an operator belongs to

/// By forward operator, as the model's own units are combined.
std::vector<Group> groups_of_blocks(const Graph& graph, std::int64_t blocks) {
  std::vector<Group> groups;
  for (const Operator& op : graph.operators)
    groups.push_back(op.unit == model::root_unit ? "" : std::to_string((op.unit.value - 1) / blocks));
  return groups;
}

/// The nearest module around `path`, itself included, that has a unit of its own.
Group nearest_selected(std::string_view path, const Wrap& how) {
  const auto selected = [&](std::string_view module) {
    return contains(how.names, how.policy == Wrap::Policy::list ? module : class_of(module));
  };
  while (!path.empty() && !selected(path)) path = parent_of(path);
  return Group(path);
}

std::vector<Group> groups_of_modules(const Graph& graph, const Wrap& how) {
  std::vector<Group> groups;
  for (const Operator& op : graph.operators) {
    const bool follows = parameters_of(graph, op).empty() && !groups.empty();
    groups.push_back(follows ? Group(groups.back()) : nearest_selected(graph.modules[op.module.value], how));
  }
  return groups;
}

/// By parameter, how many operators read it.
std::vector<int> readers(const Graph& graph) {
  std::vector<int> count(graph.parameters.size());
  for (const Operator& op : graph.operators)
    for (const ParameterId id : parameters_of(graph, op)) ++count[id.value];
  return count;
}

/// Elements that belong to nothing but this operator.
std::int64_t own_elements(const Graph& graph, const Operator& op, const std::vector<int>& readers) {
  std::int64_t elements = 0;
  for (const ParameterId id : parameters_of(graph, op))
    if (readers[id.value] == 1) elements += graph.parameters[id.value].elements();
  return elements;
}

std::vector<Group> groups_by_size(const Graph& graph, std::int64_t least) {
  const std::vector<int> read = readers(graph);
  std::vector<Group> groups;
  std::int64_t elements = 0;
  int group = 0;
  model::ModuleId module;
  for (const Operator& op : graph.operators) {
    const std::int64_t own = own_elements(graph, op, read);
    if (own > 0 && op.module != module && elements >= least) ++group, elements = 0;
    if (own > 0) module = op.module, elements += own;
    groups.push_back(std::to_string(group));
  }
  if (elements < least) std::ranges::replace(groups, std::to_string(group), Group());
  return groups;
}

std::vector<Group> groups_of(const Graph& graph, const Wrap& how) {
  switch (how.policy) {
    case Wrap::Policy::block:
    case Wrap::Policy::blocks:
      return groups_of_blocks(graph, how.count);
    case Wrap::Policy::size:
      return groups_by_size(graph, how.count);
    case Wrap::Policy::classes:
    case Wrap::Policy::list:
      return groups_of_modules(graph, how);
    case Wrap::Policy::none:
      break;
  }
  return std::vector<Group>(graph.operators.size());
}

// ---- from groups to units

/// Numbers the groups that own parameters and gives each operator and parameter its unit.
class Wrapping {
 public:
  Wrapping(const Graph& forward, const Wrap& how) : graph_(forward), how_(how), groups_(groups_of(forward, how)) {}

  Graph run() {
    graph_.units = {{.name = "root"}};
    find_owners();
    number_units();
    for (std::size_t i = 0; i < groups_.size(); ++i) graph_.operators[i].unit = unit_of(groups_[i]);
    add_parameters();
    apply_overrides();
    return std::move(graph_);
  }

 private:
  /// By parameter the group that alone reads it, else the root.
  void find_owners() {
    std::vector<std::set<Group>> of_readers(graph_.parameters.size());
    for (std::size_t i = 0; i < groups_.size(); ++i)
      for (const ParameterId id : parameters_of(graph_, graph_.operators[i])) of_readers[id.value].insert(groups_[i]);
    for (const auto& groups : of_readers) owners_.push_back(groups.size() == 1 ? *groups.begin() : "");
  }

  bool is_ignored(const Parameter& parameter) const { return any_matches(how_.ignored, parameter.name); }

  void number_units() {
    std::set<Group> owning;
    for (std::size_t id = 0; id < owners_.size(); ++id)
      if (!is_ignored(graph_.parameters[id])) owning.insert(owners_[id]);
    for (const Group& group : groups_)
      if (!group.empty() && owning.contains(group) && !units_.contains(group))
        units_[group] = add_unit(fmt::format("u{}", units_.size()));
  }

  UnitId add_unit(std::string name) {
    graph_.units.push_back({.name = std::move(name)});
    return {static_cast<std::uint32_t>(graph_.units.size() - 1)};
  }

  UnitId unit_of(const Group& group) const {
    const auto found = units_.find(group);
    return found == units_.end() ? model::root_unit : found->second;
  }

  void add_parameters() {
    UnitId ignored;
    for (std::uint32_t id = 0; id < graph_.parameters.size(); ++id) {
      Parameter& parameter = graph_.parameters[id];
      parameter.trainable = parameter.trainable && !any_matches(how_.frozen, parameter.name);
      if (is_ignored(parameter) && !ignored.valid()) {
        ignored = add_unit("ignored");
        graph_.units.back().replicated = true;
      }
      parameter.unit = is_ignored(parameter) ? ignored : unit_of(owners_[id]);
      graph_.units[parameter.unit.value].parameters.push_back({id});
    }
  }

  void apply_overrides();

  Graph graph_;
  const Wrap& how_;
  std::vector<Group> groups_;  // by operator
  std::vector<Group> owners_;  // by parameter
  std::map<Group, UnitId> units_;
};

bool applies(const Wrap::Override& override, const Graph& graph, const model::Unit& unit) {
  return matches_glob(override.glob, unit.name) || std::ranges::any_of(unit.parameters, [&](ParameterId id) {
           return matches_glob(override.glob, graph.parameters[id.value].name);
         });
}

void Wrapping::apply_overrides() {
  for (const Wrap::Override& override : how_.overrides)
    for (model::Unit& unit : graph_.units)
      if (unit.name != "ignored" && applies(override, graph_, unit)) unit.replicated = override.replicated;
}

}  // namespace

Graph wrap(const Graph& forward, const Wrap& how) { return Wrapping(forward, how).run(); }

std::vector<Keep> keeps(const Graph& wrapped, const Wrap& how, Keep otherwise) {
  std::vector<Keep> keeps(wrapped.units.size(), otherwise);
  for (const Wrap::Override& override : how.overrides)
    for (std::size_t unit = 0; unit < keeps.size(); ++unit)
      if (applies(override, wrapped, wrapped.units[unit])) keeps[unit] = override.keep;
  return keeps;
}

}  // namespace foreshard::plan
