#include "engine/products.hpp"

namespace foreshard::engine {

std::optional<kernels::Matmul> product_of(const plan::Op& op) {
  const plan::Sizes& s = op.sizes;
  switch (op.kind) {
    case plan::OpKind::linear:
      return kernels::Matmul{.m = s.rows, .n = s.cols, .k = s.inner, .transpose_b = true};
    case plan::OpKind::linear_input_grad:
      return kernels::Matmul{.m = s.rows, .n = s.inner, .k = s.cols};
    case plan::OpKind::linear_weight_grad:
      return kernels::Matmul{.m = s.cols, .n = s.inner, .k = s.rows, .transpose_a = true, .accumulate = op.accumulate};
    default:
      return std::nullopt;
  }
}

}  // namespace foreshard::engine
