#pragma once
#include <algorithm>
#include <compare>
#include <cstdint>

#include "kernels/cpu/kernels.hpp"

/// Products of matrices: of floats, and of halves by either route. Each function computes rows [begin, end) of C on the
/// calling thread alone, and throws LibraryError if oneDNN fails.
namespace foreshard::kernels::cpu {

/// The operands of a `Matmul`, whole; `bias` may be null.
template <class T, class Result>
struct Factors {
  const T *a, *b, *bias;
  Result* c;
};

/// The bits do not depend on how rows are cut.
void matmul(const Matmul&, MatmulRoute, Const a, Const b, Const bias, Mut c);
std::int64_t matmul_scratch_bytes(const Matmul&, MatmulRoute, DType operands, DType result);

template <class Result>
void native_rows(const Matmul&, std::int64_t begin, std::int64_t end, const Factors<BFloat16, Result>&);
std::int64_t native_scratch_bytes(const Matmul&, DType result);

template <class T, class Result>
void widened_rows(const Matmul&, std::int64_t begin, std::int64_t end, const Factors<T, Result>&);
std::int64_t widened_scratch_bytes(const Matmul&, DType result);

/// A product of dense matrices for oneDNN, whose A is not transposed.
struct Product {
  std::int64_t m, n, k;
  bool transpose_b, accumulate, bias;
  DType operands = DType::f32, result = DType::f32;
  auto operator<=>(const Product&) const = default;
};
/// Uses `thread_scratch` of this size.
void run_product(const Product&, const void* a, const void* b, const void* bias, void* c);
std::int64_t product_scratch_bytes(const Product&);

/// C[m,n] = beta·C + op(A)·op(B) in f32, with `lda` and so on elements from row to row as stored.
struct Sgemm {
  std::int64_t m, n, k;
  bool transpose_a, transpose_b;
  const float* a;
  std::int64_t lda;
  const float* b;
  std::int64_t ldb;
  float beta;
  float* c;
  std::int64_t ldc;
};
void run_sgemm(const Sgemm&);

}  // namespace foreshard::kernels::cpu
