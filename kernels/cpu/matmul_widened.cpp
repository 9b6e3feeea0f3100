#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/simd.hpp"

namespace foreshard::kernels::cpu {
namespace {

// Blocks that are widened at a time. Widening costs a few hundredths of the products that a block takes part in, and
// all three together fit into a share of the last-level cache.
constexpr std::int64_t block_rows = 512, block_cols = 512, block_depth = 1024;

struct Extents {
  std::int64_t rows, cols, depth;
};

Extents largest(const Matmul& o) {
  return {std::min(block_rows, o.m), std::min(block_cols, o.n), std::min(block_depth, o.k)};
}

std::int64_t floats_of(const Extents& e, bool own_result) {
  return e.rows * e.depth + e.depth * e.cols + (own_result ? e.rows * e.cols : 0);
}

/// to[i, j] = from[i·stride + j], dense.
template <class T>
void widen(std::int64_t rows, std::int64_t cols, const T* from, std::int64_t stride, float* to) {
  for (std::int64_t i = 0; i < rows; ++i) map(cols, to + i * cols, same, from + i * stride);
}

/// A part of an operand that is stored [across, along] as the product sees it, or turned.
struct Part {
  std::int64_t across, along, first_across, first_along;
};
template <class T>
void widen(const Part& p, const T* whole, bool turned, std::int64_t whole_across, std::int64_t whole_along, float* to) {
  if (turned) return widen(p.along, p.across, whole + p.first_along * whole_across + p.first_across, whole_across, to);
  widen(p.across, p.along, whole + p.first_across * whole_along + p.first_along, whole_along, to);
}

template <class T, class Result>
class Blocks {
 public:
  Blocks(const Matmul& o, const Factors<T, Result>& f) : o_(o), f_(f) {
    const Extents e = largest(o);
    a_ = thread_scratch().of<float>(static_cast<std::size_t>(floats_of(e, own_result)));
    b_ = a_ + e.rows * e.depth;
    c_ = b_ + e.depth * e.cols;
  }

  void run(std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += block_rows) {
      for (std::int64_t j = 0; j < o_.n; j += block_cols) {
        block(i, std::min(block_rows, end - i), j, std::min(block_cols, o_.n - j));
      }
    }
  }

 private:
  static constexpr bool own_result = !std::is_same_v<Result, float>;

  void block(std::int64_t i, std::int64_t rows, std::int64_t j, std::int64_t cols) {
    const std::int64_t stride = own_result ? cols : o_.n;
    Result* result = f_.c + i * o_.n + j;
    float* sums = c_;
    if constexpr (!own_result) sums = result;
    const bool begun = o_.accumulate || f_.bias;
    if (begun) begin_sums(rows, cols, j, result, sums, stride);
    for (std::int64_t l = 0; l < o_.k; l += block_depth) {
      const std::int64_t depth = std::min(block_depth, o_.k - l);
      if (j == 0 || o_.k > block_depth) widen({rows, depth, i, l}, f_.a, o_.transpose_a, o_.m, o_.k, a_);
      widen({depth, cols, l, j}, f_.b, o_.transpose_b, o_.k, o_.n, b_);
      run_sgemm({rows, cols, depth, o_.transpose_a, o_.transpose_b, a_, o_.transpose_a ? rows : depth, b_,
                 o_.transpose_b ? depth : cols, begun || l > 0 ? 1.0F : 0.0F, sums, stride});
    }
    if constexpr (own_result) {
      for (std::int64_t r = 0; r < rows; ++r) map(cols, result + r * o_.n, same, sums + r * stride);
    }
  }

  /// C or zero, plus the bias.
  void begin_sums(std::int64_t rows, std::int64_t cols, std::int64_t j, const Result* c, float* sums,
                  std::int64_t stride) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      float* row = sums + r * stride;
      if (o_.accumulate)
        map(cols, row, same, c + r * o_.n);
      else
        std::fill_n(row, cols, 0.0F);
      if (f_.bias) map(cols, row, plus, row, f_.bias + j);
    }
  }

  const Matmul& o_;
  const Factors<T, Result>& f_;
  float *a_, *b_, *c_;
};

}  // namespace

template <class T, class Result>
void widened_rows(const Matmul& o, std::int64_t begin, std::int64_t end, const Factors<T, Result>& f) {
  Blocks<T, Result>(o, f).run(begin, end);
}

template void widened_rows(const Matmul&, std::int64_t, std::int64_t, const Factors<BFloat16, BFloat16>&);
template void widened_rows(const Matmul&, std::int64_t, std::int64_t, const Factors<BFloat16, float>&);
template void widened_rows(const Matmul&, std::int64_t, std::int64_t, const Factors<Float16, Float16>&);
template void widened_rows(const Matmul&, std::int64_t, std::int64_t, const Factors<Float16, float>&);

std::int64_t widened_scratch_bytes(const Matmul& o, DType result) {
  return floats_of(largest(o), result != DType::f32) * static_cast<std::int64_t>(sizeof(float));
}

}  // namespace foreshard::kernels::cpu
