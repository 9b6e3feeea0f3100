#pragma once
#include <optional>
#include <string>
#include <vector>

#include "exec/step_context.hpp"
#include "model/graph.hpp"

namespace foreshard::train {

/// Parameters that the optimizer treats in a way of their own: those whose name one of `patterns` (globs) matches.
struct ParameterGroup {
  std::vector<std::string> patterns;
  double learning_rate_scale = 1;
  std::optional<double> weight_decay;  ///< none: as without the group
};

/// Reads "GLOB[,GLOB…]:lr_scale=X,weight_decay=Y[;…]", for example
///   *.bias,*.ln_*:weight_decay=0; wte.*:lr_scale=0.1
/// Throws InputError(usage) that quotes the group, says what was expected and gives this example.
std::vector<ParameterGroup> parse_parameter_groups(const std::string& text);

/// How each parameter of the graph is updated, by ParameterId: as the first group that matches its name says, and
/// elsewhere with `weight_decay` for parameters of two or more dimensions and none for gains and biases. Throws
/// InputError(usage) naming a pattern that matches no parameter.
std::vector<exec::ParameterRule> parameter_rules(const model::Graph& graph, const std::vector<ParameterGroup>& groups,
                                                 double weight_decay);

}  // namespace foreshard::train
