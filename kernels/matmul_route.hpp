#pragma once
#include <compare>
#include <cstdint>
#include <map>

#include "base/dtype.hpp"

namespace foreshard::kernels {

/// C[m,n] = (accumulate ? C : 0) + op(A)·op(B) + bias[n]; A is stored [m,k], or [k,m] if transpose_a; B [k,n], or
/// [n,k]. A, B and bias have one type; C has that type, or f32: its sums are made in f32 and rounded once.
struct Matmul {
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false, accumulate = false;
  auto operator<=>(const Matmul&) const = default;
};

/// How bf16 matrices are multiplied: by the processor's bf16 instructions, or widened to f32 block by block, which is
/// exact and twice as fast where those instructions are slow or absent. Both sum in f32, but not in the same order.
enum class MatmulRoute : std::uint8_t { native, widened };

/// The route of every product, a plain value: ranks and resumed runs that use the same one get the same bits. Shapes
/// are listed as not accumulating; both forms take that route.
struct MatmulRoutes {
  MatmulRoute otherwise = MatmulRoute::widened;
  std::map<Matmul, MatmulRoute> of_shape;

  MatmulRoute of(Matmul shape) const {
    shape.accumulate = false;
    const auto found = of_shape.find(shape);
    return found == of_shape.end() ? otherwise : found->second;
  }
};

class Backend;

/// The faster route for this product of bf16 matrices into `result` (bf16 or f32): both are run on made-up operands,
/// which it allocates, several times in turn, and their median times compared. Widened where the native route fails, or
/// does not keep rows apart (oneDNN issue 5717: tails of k leaked from row to row). The backend is left with the route
/// chosen for every product. Times differ from run to run: one rank should choose, and tell the others.
MatmulRoute choose_matmul_route(Backend&, const Matmul&, DType result);

}  // namespace foreshard::kernels
