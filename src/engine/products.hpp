#pragma once
#include <optional>

#include "kernels/matmul_route.hpp"
#include "plan/op.hpp"

namespace foreshard::engine {

/// The matrix product that a linear op is; none for any other op.
///   linear              y[rows, cols] = x[rows, inner] · weight[cols, inner]ᵀ + bias
///   linear_input_grad   dx[rows, inner] = dy[rows, cols] · weight[cols, inner]
///   linear_weight_grad  d weight[cols, inner] = dy[rows, cols]ᵀ · x[rows, inner]
std::optional<kernels::Matmul> product_of(const plan::Op& op);

}  // namespace foreshard::engine
