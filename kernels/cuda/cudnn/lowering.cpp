#include "kernels/cuda/cudnn/lowering.hpp"

#include "base/error.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

cudnnDataType_t data_type(Element type) {
  switch (type) {
    case Element::bf16:
      return CUDNN_DATA_BFLOAT16;
    case Element::f16:
      return CUDNN_DATA_HALF;
    case Element::i32:
      return CUDNN_DATA_INT32;
    case Element::boolean:
      return CUDNN_DATA_BOOLEAN;
    case Element::f32:
      break;
  }
  return CUDNN_DATA_FLOAT;
}

cudnnPointwiseMode_t mode_of(Kind kind) {
  switch (kind) {
    case Kind::add:
      return CUDNN_POINTWISE_ADD;
    case Kind::subtract:
      return CUDNN_POINTWISE_SUB;
    case Kind::multiply:
      return CUDNN_POINTWISE_MUL;
    case Kind::divide:
      return CUDNN_POINTWISE_DIV;
    case Kind::exp:
      return CUDNN_POINTWISE_EXP;
    case Kind::log:
      return CUDNN_POINTWISE_LOG;
    case Kind::at_least:
      return CUDNN_POINTWISE_CMP_GE;
    case Kind::greater:
      return CUDNN_POINTWISE_CMP_GT;
    case Kind::select:
      return CUDNN_POINTWISE_BINARY_SELECT;
    case Kind::index:
      return CUDNN_POINTWISE_GEN_INDEX;
    default:
      break;
  }
  broken_contract("mode_of(kind)", __FILE__, __LINE__, "this operation is not by element");
}

Descriptor tensor_of(const Tensor& tensor, std::int64_t id) {
  Descriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, data_type(tensor.type))
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(tensor.dims))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(tensor.strides))
      .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, operand_alignment)
      .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, !tensor.operand && !tensor.value)
      .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, tensor.value.has_value());
  made.finalize();
  return made;
}

/// Operations of a graph, over descriptors of its tensors.
class Lowering {
 public:
  explicit Lowering(const Graph& graph) : graph_(graph) {
    for (const Tensor& tensor : graph.tensors) tensors_.push_back(tensor_of(tensor, std::ssize(tensors_)));
  }
  Descriptor operation(const Operation&) const;

 private:
  Descriptor matmul(const Operation&) const;
  Descriptor by_element(const Operation&) const;
  Descriptor reduction(const Operation&, cudnnReduceTensorOp_t) const;
  Descriptor transpose(const Operation&) const;
  const Descriptor& at(TensorIndex index) const { return tensors_[static_cast<std::size_t>(index)]; }

  const Graph& graph_;
  std::vector<Descriptor> tensors_;
};

Descriptor Lowering::matmul(const Operation& o) const {
  Descriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  product.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  Descriptor made(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, at(o.inputs[0]))
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, at(o.inputs[1]))
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, at(o.output))
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product)
      .finalize();
  return made;
}

/// Comparisons are boolean, all else in f32.
cudnnDataType_t precision(const Operation& o) {
  const bool comparison = o.kind == Kind::at_least || o.kind == Kind::greater;
  return comparison ? CUDNN_DATA_BOOLEAN : CUDNN_DATA_FLOAT;
}

Descriptor Lowering::by_element(const Operation& o) const {
  Descriptor function(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  function.set(CUDNN_ATTR_POINTWISE_MODE, mode_of(o.kind)).set(CUDNN_ATTR_POINTWISE_MATH_PREC, precision(o));
  if (o.kind == Kind::index) function.set(CUDNN_ATTR_POINTWISE_AXIS, o.axis);
  function.finalize();
  Descriptor made(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, function)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, at(o.inputs[0]))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, at(o.output));
  if (o.inputs.size() > 1) made.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, at(o.inputs[1]));
  if (o.inputs.size() > 2) made.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, at(o.inputs[2]));
  made.finalize();
  return made;
}

Descriptor Lowering::reduction(const Operation& o, cudnnReduceTensorOp_t function) const {
  Descriptor reduce(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  reduce.set(CUDNN_ATTR_REDUCTION_OPERATOR, function).set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  Descriptor made(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, reduce)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, at(o.inputs[0]))
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, at(o.output))
      .finalize();
  return made;
}

Descriptor Lowering::transpose(const Operation& o) const {
  Descriptor made(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  made.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, at(o.inputs[0]))
      .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, at(o.output))
      .finalize();
  return made;
}

Descriptor Lowering::operation(const Operation& o) const {
  switch (o.kind) {
    case Kind::matmul:
      return matmul(o);
    case Kind::largest:
      return reduction(o, CUDNN_REDUCE_TENSOR_MAX);
    case Kind::sum:
      return reduction(o, CUDNN_REDUCE_TENSOR_ADD);
    case Kind::transpose:
      return transpose(o);
    default:
      return by_element(o);
  }
}

}  // namespace

Descriptor lowered(const Graph& graph, cudnnHandle_t handle) {
  const Lowering lowering(graph);
  std::vector<Descriptor> operations;
  for (const Operation& o : graph.operations) operations.push_back(lowering.operation(o));
  Descriptor made(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (handle) made.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, handle);
  made.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations).finalize();
  return made;
}

}  // namespace foreshard::kernels::cuda::cudnn
