#include <algorithm>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

constexpr std::int64_t strip_cols = 16 * lanes;  // one strip's sums stay in the first-level cache
constexpr std::int64_t block_rows = 64;          // summed on their own, for accuracy

/// Adds columns [0, n) of `rows` rows to `total`.
void add_strip(std::int64_t rows, std::int64_t n, std::int64_t stride, const float* dy, float* total) {
  const auto plus = [](Vec u, Vec v) { return u + v; };
  for (std::int64_t top = 0; top < rows; top += block_rows) {
    float block[strip_cols] = {};
    const std::int64_t bottom = std::min(rows, top + block_rows);
    for (std::int64_t i = top; i < bottom; ++i) map(n, block, plus, block, dy + i * stride);
    map(n, total, plus, total, block);
  }
}

}  // namespace

void bias_grad(const Rows& o, bool accumulate, const float* dy, float* dbias) {
  share(o.cols, strip_cols, [=](std::int64_t begin, std::int64_t end) {
    if (!accumulate) std::fill(dbias + begin, dbias + end, 0.0F);
    for (std::int64_t j = begin; j < end; j += strip_cols) {
      add_strip(o.rows, std::min(strip_cols, end - j), o.cols, dy + j, dbias + j);
    }
  });
}

}  // namespace foreshard::kernels::cpu
