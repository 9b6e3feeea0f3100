#pragma once
#include <compare>
#include <set>
#include <vector>

#include "kernels/cuda/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine::cuda {

/// A product of a plan, with all that its algorithm depends on.
struct Product {
  kernels::Matmul matmul;
  kernels::cuda::MatmulTypes types;
  auto operator<=>(const Product&) const = default;
};

/// Two ops of a plan, one behind the other, that cuBLASLt can carry out in one pass when the first is due. Neither the
/// plan nor what other ops see of memory and time changes.
struct FusedPair {
  const plan::Op *op, *next;
  Product product;
  plan::Operand result, other;  ///< as kernels::cuda::Fused says
};

/// All pairs of
///   linear, gelu                               the GELU, and what backward needs of it
///   linear_input_grad, gelu_backward           whose gradient in between nobody else reads
///   linear_weight_grad, linear_bias_grad       of the same gradient
/// of which the second waits for nothing else, and writes to bytes that the first does not read. GELU is the tanh form.
std::vector<FusedPair> fused_pairs(const plan::Plan& plan);

/// The products of a plan, those of fused pairs too.
std::set<Product> products_of(const plan::Plan& plan);

}  // namespace foreshard::engine::cuda
