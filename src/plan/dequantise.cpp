#include <utility>

#include "plan/build.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using model::Operator;
using model::Parameter;
using model::Role;
using model::TensorId;

/// Walks a graph. What reads a packed parameter reads instead what an operator right before it makes of that.
class Dequantisation {
 public:
  explicit Dequantisation(const Graph& graph) : graph_(graph), types_(graph.parameters.size()) {}

  Graph run() {
    for (std::size_t id = 0; id < graph_.parameters.size(); ++id) pack(id);
    for (Operator& op : std::exchange(graph_.operators, {})) {
      for (TensorId& input : op.inputs)
        if (is_packed(input)) input = dequantised(input, op);
      graph_.operators.push_back(std::move(op));
    }
    return std::move(graph_);
  }

 private:
  const Parameter& parameter_of(TensorId id) const { return graph_.parameters[graph_[id].parameter.value]; }
  bool is_packed(TensorId id) const {
    return id.valid() && graph_[id].role == Role::parameter && parameter_of(id).is_packed();
  }

  void pack(std::size_t id) {
    const Parameter& parameter = graph_.parameters[id];
    model::Tensor& value = graph_[parameter.value];
    types_[id] = value.dtype;
    if (parameter.is_packed()) value.dtype = DType::i32, value.elements = parameter.packed_words();
  }

  TensorId dequantised(TensorId packed, const Operator& reader) {
    const Parameter& parameter = parameter_of(packed);
    const TensorId weight = graph_.add_tensor({.role = Role::activation,
                                               .dtype = types_[graph_[packed].parameter.value],
                                               .elements = parameter.elements(),
                                               .parameter = graph_[packed].parameter});
    graph_.operators.push_back({.kind = OpKind::dequantise,
                                .phase = reader.phase,
                                .unit = reader.unit,
                                .module = reader.module,
                                .sizes = {.rows = parameter.shape[0], .cols = parameter.shape[1]},
                                .inputs = {packed},
                                .outputs = {weight}});
    return weight;
  }

  Graph graph_;
  std::vector<DType> types_;  // by parameter: what is computed with it
};

}  // namespace

Graph dequantise(const Graph& graph) { return Dequantisation(graph).run(); }

}  // namespace foreshard::plan
