#include <algorithm>
#include <map>
#include <utility>

#include "plan/build.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using model::Operator;
using model::Role;
using model::TensorId;

/// Walks a forward graph: what an operator computes gets the type of its unit, and casts stand where a unit gets or
/// gives another type. Statistics and losses keep theirs.
class Typing {
 public:
  Typing(const Graph& graph, const Mesh& mesh, const ScheduleOptions& options)
      : graph_(graph),
        forward_(graph.operators),
        mesh_(mesh),
        options_(options),
        given_(graph.tensors.size()),
        maker_(graph.tensors.size()),
        leaves_(graph.tensors.size()) {
    for (const Operator& op : forward_) note(op);
  }

  Graph run() {
    for (model::Parameter& parameter : graph_.parameters) type(parameter);
    graph_.operators.clear();
    for (const Operator& op : forward_) type(op);
    return std::move(graph_);
  }

 private:
  DType computed_in(UnitId unit) const { return precision_of(options_, unit).parameters.value_or(graph_.dtype); }
  DType given_in(UnitId unit) const { return precision_of(options_, unit).output.value_or(computed_in(unit)); }

  /// Gradients that nobody reduces, or that add up before they are, are in the type in which parameters are kept.
  DType reduced_in(UnitId unit) const {
    const bool adds_up = options_.accumulation == Accumulation::no_sync && options_.micro_batches > 1;
    if (mesh_.world_size() == 1 || adds_up) return graph_.dtype;
    return precision_of(options_, unit).reduction.value_or(graph_.dtype);
  }

  void type(model::Parameter& parameter) {
    graph_[parameter.value].dtype = computed_in(parameter.unit);
    parameter.gradient = reduced_in(parameter.unit);
  }

  void type(Operator op) {
    for (TensorId& input : op.inputs)
      if (input.valid() && graph_[input].role == Role::activation) input = in_type_of(op.unit, input);
    const TensorId result = op.outputs.front();
    const bool value = op.kind != OpKind::cross_entropy;
    if (value) graph_[result].dtype = computed_in(op.unit);
    const UnitId unit = op.unit;
    graph_.operators.push_back(std::move(op));
    if (value && leaves_[result.value]) given_[result.value] = cast(result, given_in(unit), unit);
  }

  void note(const Operator& op) {
    for (const TensorId output : op.outputs) maker_[output.value] = op.unit;
    for (const TensorId input : op.inputs)
      if (input.valid() && maker_[input.value] != op.unit) leaves_[input.value] = true;
  }

  /// What a unit reads of a tensor, which another unit may have made.
  TensorId in_type_of(UnitId unit, TensorId tensor) {
    const TensorId given = leaves_[tensor.value] && maker_[tensor.value] != unit ? given_[tensor.value] : tensor;
    const std::pair key{unit, given};
    if (const auto found = taken_.find(key); found != taken_.end()) return found->second;
    return taken_[key] = cast(given, computed_in(unit), unit);
  }

  TensorId cast(TensorId tensor, DType dtype, UnitId unit) {
    model::Tensor copy = graph_[tensor];
    if (copy.dtype == dtype) return tensor;
    copy.dtype = dtype;
    const TensorId result = graph_.add_tensor(copy);
    graph_.operators.push_back({.kind = OpKind::cast,
                                .unit = unit,
                                .sizes = {.rows = copy.elements, .cols = 1},
                                .inputs = {tensor},
                                .outputs = {result}});
    return result;
  }

  Graph graph_;
  std::vector<Operator> forward_;
  const Mesh& mesh_;
  const ScheduleOptions& options_;
  std::vector<TensorId> given_;  // by tensor: the same as other units get it
  std::vector<UnitId> maker_;    // by tensor
  std::vector<bool> leaves_;     // by tensor: another unit reads it
  std::map<std::pair<UnitId, TensorId>, TensorId> taken_;
};

bool is_mixed(const ScheduleOptions& options, DType own) {
  const auto differs = [&](const Precision& p) {
    return p.parameters.value_or(own) != own || p.reduction.value_or(own) != own || p.output.value_or(own) != own;
  };
  return differs(options.precision) || std::ranges::any_of(options.precision_of_unit, differs);
}

}  // namespace

Graph set_types(const Graph& forward, const Mesh& mesh, const ScheduleOptions& options) {
  return is_mixed(options, forward.dtype) ? Typing(forward, mesh, options).run() : forward;
}

}  // namespace foreshard::plan
