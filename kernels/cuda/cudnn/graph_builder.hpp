#pragma once
#include <initializer_list>

#include "kernels/cuda/cudnn/graph.hpp"

namespace foreshard::kernels::cuda::cudnn {

using Dims = std::array<std::int64_t, 4>;

/// Makes a graph, operation by operation.
class GraphBuilder {
 public:
  TensorIndex operand(Operand, const Dims&, const Dims& strides, Element);
  TensorIndex number(float);

  /// What an operation makes of its inputs: a dense tensor that is never stored.
  TensorIndex make(Kind, std::initializer_list<TensorIndex> inputs, const Dims&, Element = Element::f32,
                   std::int64_t axis = 0);
  /// An operation whose result lies in memory.
  void write(Kind, std::initializer_list<TensorIndex> inputs, TensorIndex output);

  /// Describes an operand with its last two dimensions exchanged from now on, and returns it.
  TensorIndex transposed_view(TensorIndex);
  /// The same exchange as an operation.
  TensorIndex transposed(TensorIndex, Element);

  TensorIndex of(Operand) const;  ///< which there is
  Graph graph() && { return std::move(graph_); }

 private:
  TensorIndex add(const Tensor&);

  Graph graph_;
};

}  // namespace foreshard::kernels::cuda::cudnn
