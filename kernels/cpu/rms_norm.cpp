#include <algorithm>
#include <cmath>

#include "kernels/cpu/column_sums.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

template <class T>
void normalize(const Rows& o, float epsilon, const T* x, const T* residual, const T* gain, T* sum_of, T* y,
               float* rstd) {
  share(o.rows, grain_rows(o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i * o.cols;
      if (residual) map(o.cols, sum_of + row, plus, x + row, residual + row);
      const T* from = (residual ? sum_of : x) + row;
      const float squares = sum(
          o.cols, [](Vec v) { return v * v; }, from);
      const float r = 1 / std::sqrt(squares / static_cast<float>(o.cols) + epsilon);
      map(
          o.cols, y + row, [r](Vec v, Vec g) { return v * r * g; }, from, gain);
      rstd[i] = r;
    }
  });
}

template <class T>
struct Backward {
  std::int64_t cols;
  const T *dy, *x, *gain;
  const float* rstd;
  const T* residual_grad;
  T* dx;

  /// Writes row i of dx, if it is wanted, and adds its terms to dgain.
  void row(std::int64_t i, float* dgain) const {
    const T *d = dy + i * cols, *v = x + i * cols;
    const float r = rstd[i];
    map(
        cols, dgain, [r](Vec s, Vec g, Vec u) { return s + g * u * r; }, dgain, d, v);
    if (!dx) return;
    const float mean_gx = sum(
                              cols, [r](Vec g, Vec w, Vec u) { return g * w * u * r; }, d, gain, v) /
                          static_cast<float>(cols);
    const auto through = [=](Vec g, Vec w, Vec u) { return r * (g * w - u * r * mean_gx); };
    T* out = dx + i * cols;
    if (residual_grad) {
      map(
          cols, out, [=](Vec g, Vec w, Vec u, Vec p) { return through(g, w, u) + p; }, d, gain, v,
          residual_grad + i * cols);
    } else {
      map(cols, out, through, d, gain, v);
    }
  }
};

}  // namespace

void rms_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd) {
  by_number(y.dtype, [&]<class T>(T) {
    normalize(o, epsilon, as<T>(x), as<T>(residual), as<T>(gain), as<T>(sum), as<T>(y), as<float>(rstd));
  });
}

void rms_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const rstd, Const residual_grad,
                       Mut dx, Mut dgain) {
  by_number(dy.dtype, [&]<class T>(T) {
    const Backward<T> backward{o.cols,   as<T>(dy), as<T>(x), as<T>(gain), as<float>(rstd), as<T>(residual_grad),
                               as<T>(dx)};
    const ColumnSums sums(o, 1, [&](std::int64_t i, float* part) { backward.row(i, part); });
    by_result_type<T>(type_of_present(dgain, {}, dy.dtype), [&]<class Grad>(Grad) {
      if (dgain.data) sums.write(0, accumulate, as<Grad>(dgain));
    });
  });
}

}  // namespace foreshard::kernels::cpu
