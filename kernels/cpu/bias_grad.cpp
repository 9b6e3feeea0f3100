#include <algorithm>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

constexpr std::int64_t block_rows = 64;  // summed on their own, for accuracy

/// Columns [0, n) of `rows` rows, with `stride` elements from row to row.
template <class T, class Grad>
void sum_strip(std::int64_t rows, std::int64_t n, std::int64_t stride, const T* dy, bool accumulate, Grad* dbias) {
  float total[strip_cols] = {};
  if (accumulate) map(n, total, same, dbias);
  for (std::int64_t top = 0; top < rows; top += block_rows) {
    float block[strip_cols] = {};
    const std::int64_t bottom = std::min(rows, top + block_rows);
    for (std::int64_t i = top; i < bottom; ++i) map(n, block, plus, block, dy + i * stride);
    map(n, total, plus, total, block);
  }
  map(n, dbias, same, total);
}

}  // namespace

void bias_grad(const Rows& o, bool accumulate, Const dy, Mut dbias) {
  by_number(dy.dtype, [&]<class T>(T) {
    by_result_type<T>(dbias.dtype, [&]<class Grad>(Grad) {
      share(o.cols, strip_cols, [=, &o, from = as<T>(dy), to = as<Grad>(dbias)](std::int64_t begin, std::int64_t end) {
        for (std::int64_t j = begin; j < end; j += strip_cols) {
          sum_strip(o.rows, std::min(strip_cols, end - j), o.cols, from + j, accumulate, to + j);
        }
      });
    });
  });
}

}  // namespace foreshard::kernels::cpu
