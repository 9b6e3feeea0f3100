#include "plan/tensor_map.hpp"

namespace foreshard::plan {

using model::Role;
using model::TensorId;

namespace {

/// A dequantised weight is there for the kernel that reads it.
MemoryClass class_of(const model::Tensor& tensor) {
  return tensor.parameter.valid() ? MemoryClass::workspace : MemoryClass::activations;
}

}  // namespace

TensorMap::TensorMap(const model::Graph& graph, Builder& build)
    : graph_(graph), build_(build), buffers_(graph.tensors.size()), pieces_(graph.parameters.size()) {
  for (const FlatParameter& unit : build.plan.units)
    for (const auto* pieces : {&unit.pieces, &unit.packed_pieces})
      for (const FlatPiece& piece : *pieces) pieces_[piece.parameter.value] = &piece;
  buffers_[graph.tokens.value] = build.tokens;
  buffers_[graph.targets.value] = build.targets;
  buffers_[graph.loss.value] = build.local_loss;
  for (const model::Operator& op : graph.operators) {
    for (const TensorId id : op.inputs) add(id);
    for (const TensorId id : op.outputs) add(id);
  }
}

void TensorMap::add(TensorId id) {
  if (!id.valid()) return;
  const Role role = graph_[id].role;
  if (role == Role::activation || role == Role::activation_grad) buffer_of(id);
}

BufferId TensorMap::buffer_of(TensorId id) {
  const model::Tensor& tensor = graph_[id];
  BufferId& buffer = buffers_[id.value];
  if (!buffer.valid() && tensor.shares.valid()) buffer = buffer_of(tensor.shares);
  if (!buffer.valid()) buffer = build_.buffer(tensor.elements * size_bytes(tensor.dtype), class_of(tensor), {}, id);
  return buffer;
}

Operand TensorMap::operand(TensorId id, BufferId parameters, BufferId gradients, bool written) const {
  if (!id.valid()) return {};
  const model::Tensor& tensor = graph_[id];
  if (tensor.role == Role::parameter) return piece(parameters, tensor, written);
  if (tensor.role == Role::parameter_grad) return piece(gradients, tensor, written);
  return {buffers_[id.value], 0, tensor.elements * size_bytes(tensor.dtype), tensor.dtype, written};
}

Operand TensorMap::piece(BufferId flat, const model::Tensor& tensor, bool written) const {
  const FlatPiece& piece = *pieces_[tensor.parameter.value];
  return Builder::words(flat, piece.elements, tensor.dtype, written, piece.offset);
}

}  // namespace foreshard::plan
