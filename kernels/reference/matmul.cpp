#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T, class Result>
void multiply(const Matmul& o, const T* a, const T* b, const T* bias, Result* c) {
  const auto a_at = [&](std::int64_t i, std::int64_t l) { return o.transpose_a ? a[l * o.m + i] : a[i * o.k + l]; };
  const auto b_at = [&](std::int64_t l, std::int64_t j) { return o.transpose_b ? b[j * o.k + l] : b[l * o.n + j]; };
  for (std::int64_t i = 0; i < o.m; ++i) {
    for (std::int64_t j = 0; j < o.n; ++j) {
      double sum = o.accumulate ? static_cast<double>(c[i * o.n + j]) : 0.0;
      for (std::int64_t l = 0; l < o.k; ++l) sum += static_cast<double>(a_at(i, l)) * static_cast<double>(b_at(l, j));
      c[i * o.n + j] = static_cast<Result>(sum + (bias ? static_cast<double>(bias[j]) : 0.0));
    }
  }
}

}  // namespace

void matmul(const Matmul& o, Const a, Const b, Const bias, Mut c) {
  by_number(a.dtype, [&]<class T>(T) {
    by_result_type<T>(c.dtype,
                      [&]<class Result>(Result) { multiply(o, as<T>(a), as<T>(b), as<T>(bias), as<Result>(c)); });
  });
}

}  // namespace foreshard::kernels::reference
