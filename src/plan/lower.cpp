#include <algorithm>

#include "plan/build.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using model::Operator;
using model::Role;
using model::TensorId;

bool is_norm(OpKind kind) { return kind == OpKind::layer_norm || kind == OpKind::rms_norm; }

/// add, then a norm of the sum in the same unit: one pass that reads both summands once.
bool fuse_add_norm(Operator& add, const Operator& norm) {
  if (add.kind != OpKind::add || !is_norm(norm.kind) || add.unit != norm.unit || norm.inputs[0] != add.outputs[0])
    return false;
  add.kind = norm.kind == OpKind::rms_norm ? OpKind::add_rms_norm : OpKind::add_layer_norm;
  add.scalar = norm.scalar;
  add.inputs.insert(add.inputs.end(), norm.inputs.begin() + 1, norm.inputs.end());
  add.outputs.insert(add.outputs.end(), norm.outputs.begin(), norm.outputs.end());
  return true;
}

/// A norm's backward, then the residual gradient added to its result: the kernel adds it while writing.
bool fuse_residual_grad(Operator& norm, const Operator& add) {
  const bool is_backward = norm.kind == OpKind::layer_norm_backward || norm.kind == OpKind::rms_norm_backward;
  if (!is_backward || add.kind != OpKind::add || add.inputs[1] != norm.outputs[0]) return false;
  norm.inputs.back() = add.inputs[0];
  norm.outputs[0] = add.outputs[0];
  return true;
}

void fuse(Graph& graph) {
  std::vector<Operator> fused;
  fused.reserve(graph.operators.size());
  for (Operator& op : graph.operators)
    if (fused.empty() || !(fuse_add_norm(fused.back(), op) || fuse_residual_grad(fused.back(), op)))
      fused.push_back(std::move(op));
  graph.operators = std::move(fused);
}

/// Inputs that the kernel may overwrite with its first output, in order of preference.
std::vector<std::size_t> replaceable_inputs(OpKind kind) {
  switch (kind) {
    case OpKind::add:
      return {1, 0};
    case OpKind::dropout:
    case OpKind::scale:
    case OpKind::gelu_backward:
    case OpKind::gelu_exact_backward:
    case OpKind::relu_backward:
    case OpKind::rotary:
    case OpKind::rotary_backward:
    case OpKind::swiglu_backward:
    case OpKind::geglu_backward:
    case OpKind::cross_entropy_backward:
      return {0};
    case OpKind::layer_norm_backward:
      return {0, 5};
    case OpKind::rms_norm_backward:
      return {0, 4};
    default:
      return {};
  }
}

/// By tensor, the position of the last operator that reads it.
std::vector<std::size_t> last_uses(const Graph& graph) {
  std::vector<std::size_t> last(graph.tensors.size(), 0);
  for (std::size_t i = 0; i < graph.operators.size(); ++i)
    for (const TensorId input : graph.operators[i].inputs)
      if (input.valid()) last[input.value] = i;
  return last;
}

/// Lets an operator write over an input that nobody reads afterwards.
void compute_in_place(Graph& graph) {
  const auto last = last_uses(graph);
  const auto temporary = [&](TensorId id) {
    return graph[id].role == Role::activation || graph[id].role == Role::activation_grad;
  };
  for (std::size_t i = 0; i < graph.operators.size(); ++i) {
    const Operator& op = graph.operators[i];
    if (!op.outputs[0].valid()) continue;
    for (const std::size_t input : replaceable_inputs(op.kind)) {
      const TensorId dies = op.inputs[input];
      if (!dies.valid() || !temporary(dies) || last[dies.value] != i) continue;
      graph[op.outputs[0]].shares = dies;
      break;
    }
  }
}

}  // namespace

Graph lower(const Graph& graph) {
  Graph lowered = graph;
  fuse(lowered);
  compute_in_place(lowered);
  return lowered;
}

}  // namespace foreshard::plan
