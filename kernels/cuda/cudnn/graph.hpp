#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

/// What cuDNN is asked to compute, as plain data: a graph of tensors and operations, which its library lowers to one
/// kernel, and which a host can interpret.
namespace foreshard::kernels::cuda::cudnn {

enum class Element : std::uint8_t { f32, bf16, f16, i32, boolean };

/// What lies in memory: attention's operands, and dy · y by row and head, f32 [batch, heads, seq], which is scratch.
enum class Operand : std::uint8_t { q, k, v, y, log_sum_exp, dy, dq, dk, dv, row_sums };

/// A tensor of four dimensions; strides are in elements. It lies in memory where an operand is named, is one number
/// that the host passes where `value` is there, and else is never stored.
struct Tensor {
  std::array<std::int64_t, 4> dims, strides;
  Element type;
  std::optional<Operand> operand;
  std::optional<float> value;
};
using TensorIndex = std::int64_t;  ///< in Graph::tensors

enum class Kind : std::uint8_t {
  matmul,  ///< of the last two dimensions; a head of the left one meets head / group of the right one
  add,     ///< this and what follows by element; dimensions of 1 are repeated
  subtract,
  multiply,
  divide,
  exp,
  log,
  at_least,  ///< a ≥ b
  greater,   ///< a > b
  select,    ///< inputs[2] ? inputs[0] : inputs[1]
  index,     ///< of the element along `axis`
  largest,   ///< over dimensions that are 1 in the output
  sum,       ///< over dimensions that are 1 in the output, or over the heads of each group
  transpose  ///< of the last two dimensions: the same numbers in the same places
};

struct Operation {
  Kind kind;
  std::vector<TensorIndex> inputs;
  TensorIndex output;
  std::int64_t axis = 0;
};

/// Operations in an order in which each has its inputs.
struct Graph {
  std::vector<Tensor> tensors;
  std::vector<Operation> operations;
};

}  // namespace foreshard::kernels::cuda::cudnn
