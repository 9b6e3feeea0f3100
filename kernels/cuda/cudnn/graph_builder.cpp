#include "kernels/cuda/cudnn/graph_builder.hpp"

#include <algorithm>
#include <utility>

namespace foreshard::kernels::cuda::cudnn {
namespace {

Dims dense(const Dims& dims) { return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}; }

void exchange_last(Tensor& tensor) {
  std::swap(tensor.dims[2], tensor.dims[3]);
  std::swap(tensor.strides[2], tensor.strides[3]);
}

}  // namespace

TensorIndex GraphBuilder::add(const Tensor& tensor) {
  graph_.tensors.push_back(tensor);
  return static_cast<TensorIndex>(graph_.tensors.size()) - 1;
}

TensorIndex GraphBuilder::operand(Operand operand, const Dims& dims, const Dims& strides, Element type) {
  return add({dims, strides, type, operand, {}});
}

TensorIndex GraphBuilder::number(float value) { return add({{1, 1, 1, 1}, {1, 1, 1, 1}, Element::f32, {}, value}); }

TensorIndex GraphBuilder::make(Kind kind, std::initializer_list<TensorIndex> inputs, const Dims& dims, Element type,
                               std::int64_t axis) {
  const TensorIndex output = add({dims, dense(dims), type, {}, {}});
  graph_.operations.push_back({kind, inputs, output, axis});
  return output;
}

void GraphBuilder::write(Kind kind, std::initializer_list<TensorIndex> inputs, TensorIndex output) {
  graph_.operations.push_back({kind, inputs, output});
}

TensorIndex GraphBuilder::transposed_view(TensorIndex of) {
  exchange_last(graph_.tensors[static_cast<std::size_t>(of)]);
  return of;
}

TensorIndex GraphBuilder::transposed(TensorIndex of, Element type) {
  Tensor turned = graph_.tensors[static_cast<std::size_t>(of)];
  exchange_last(turned);
  const TensorIndex output = add({turned.dims, turned.strides, type, {}, {}});
  graph_.operations.push_back({Kind::transpose, {of}, output});
  return output;
}

TensorIndex GraphBuilder::of(Operand operand) const {
  return std::ranges::find(graph_.tensors, operand, &Tensor::operand) - graph_.tensors.begin();
}

}  // namespace foreshard::kernels::cuda::cudnn
