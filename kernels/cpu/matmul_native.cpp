#include "kernels/cpu/matmul.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/simd.hpp"

namespace foreshard::kernels::cpu {
namespace {

constexpr std::int64_t block_rows = 512;  // of C at a time, if A has to be transposed

/// Besides `thread_scratch`, which the product itself uses.
Scratch& transposed_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

/// Swaps the off-diagonal halves of every square of 2·half rows and columns.
template <int half>
void swap_halves(HalfVec (&rows)[lanes]) {
  HalfVec upper, lower;
  for (int j = 0; j < lanes; ++j) {
    upper[j] = static_cast<std::uint16_t>((j & half) == 0 ? j : lanes + j - half);
    lower[j] = static_cast<std::uint16_t>((j & half) == 0 ? j + half : lanes + j);
  }
  for (int r = 0; r < lanes; ++r) {
    if ((r & half) != 0) continue;
    const HalfVec above = rows[r], below = rows[r + half];
    rows[r] = __builtin_shuffle(above, below, upper);
    rows[r + half] = __builtin_shuffle(above, below, lower);
  }
}

/// A square of 16: to[i·to_stride + l] = from[l·stride + i].
void transpose_square(const BFloat16* from, std::int64_t stride, BFloat16* to, std::int64_t to_stride) {
  HalfVec rows[lanes];
  for (int r = 0; r < lanes; ++r) rows[r] = halves_at(from + r * stride);
  swap_halves<8>(rows);
  swap_halves<4>(rows);
  swap_halves<2>(rows);
  swap_halves<1>(rows);
  for (int r = 0; r < lanes; ++r) put_halves(to + r * to_stride, rows[r]);
}

/// to[i, l] = from[l·stride + i] for i < rows, l < depth.
void transpose(std::int64_t rows, std::int64_t depth, const BFloat16* from, std::int64_t stride, BFloat16* to) {
  for (std::int64_t i = 0; i < rows; i += lanes) {
    for (std::int64_t l = 0; l < depth; l += lanes) {
      if (i + lanes <= rows && l + lanes <= depth) {
        transpose_square(from + l * stride + i, stride, to + i * depth + l, depth);
        continue;
      }
      for (std::int64_t r = i; r < std::min(rows, i + lanes); ++r) {
        for (std::int64_t d = l; d < std::min(depth, l + lanes); ++d) to[r * depth + d] = from[d * stride + r];
      }
    }
  }
}

Product product_of(const Matmul& o, std::int64_t rows, bool bias, DType result) {
  return {rows, o.n, o.k, o.transpose_b, o.accumulate, bias, DType::bf16, result};
}

std::int64_t transposed_elements(const Matmul& o) { return o.transpose_a ? std::min(block_rows, o.m) * o.k : 0; }

}  // namespace

template <class Result>
void native_rows(const Matmul& o, std::int64_t begin, std::int64_t end, const Factors<BFloat16, Result>& f) {
  const auto run = [&](std::int64_t first, std::int64_t rows, const BFloat16* a) {
    run_product(product_of(o, rows, f.bias != nullptr, dtype_of<Result>), a, f.b, f.bias, f.c + first * o.n);
  };
  if (!o.transpose_a) return run(begin, end - begin, f.a + begin * o.k);
  auto* a = transposed_scratch().of<BFloat16>(static_cast<std::size_t>(transposed_elements(o)));
  for (std::int64_t i = begin; i < end; i += block_rows) {
    const std::int64_t rows = std::min(block_rows, end - i);
    transpose(rows, o.k, f.a + i, o.m, a);
    run(i, rows, a);
  }
}

template void native_rows(const Matmul&, std::int64_t, std::int64_t, const Factors<BFloat16, BFloat16>&);
template void native_rows(const Matmul&, std::int64_t, std::int64_t, const Factors<BFloat16, float>&);

std::int64_t native_scratch_bytes(const Matmul& o, DType result) {
  const std::int64_t rows = o.transpose_a ? std::min(block_rows, o.m) : o.m;
  const std::int64_t product = std::max(product_scratch_bytes(product_of(o, rows, false, result)),
                                        product_scratch_bytes(product_of(o, rows, true, result)));
  return product + transposed_elements(o) * static_cast<std::int64_t>(sizeof(BFloat16));
}

}  // namespace foreshard::kernels::cpu
