#pragma once
#include <vector>

#include "plan/builder.hpp"

namespace foreshard::plan {

/// Where the tensors of a graph lie: activations in buffers of their own (shared where computed in place), parameters
/// and their gradients as views of their unit's flat buffers.
class TensorMap {
 public:
  TensorMap(const model::Graph& graph, Builder& build);

  /// `parameters` and `gradients` are the flat buffers of the unit that the tensor's parameter belongs to, if it is one
  /// or its gradient. A packed one is where it would be if packed words were all that its buffer holds.
  Operand operand(model::TensorId id, BufferId parameters, BufferId gradients, bool written) const;

 private:
  void add(model::TensorId id);
  BufferId buffer_of(model::TensorId id);
  Operand piece(BufferId flat, const model::Tensor& tensor, bool written) const;

  const model::Graph& graph_;
  Builder& build_;
  std::vector<BufferId> buffers_;         // by tensor
  std::vector<const FlatPiece*> pieces_;  // by parameter
};

}  // namespace foreshard::plan
