#include <cmath>

#include "kernels/cpu/column_sums.hpp"
#include "kernels/cpu/kernels.hpp"

namespace foreshard::kernels::cpu {
namespace {

struct Moments {
  float mean, rstd;
};

template <class T>
Moments moments_of(std::int64_t n, const T* x, float epsilon) {
  const float mean = sum(n, same, x) / static_cast<float>(n);
  const std::int64_t whole = n / lanes * lanes;
  const auto square = [mean](Vec v) { return (v - mean) * (v - mean); };
  float squares = sum(whole, square, x);
  for (std::int64_t j = whole; j < n; ++j) {
    const auto v = static_cast<float>(x[j]);
    squares += (v - mean) * (v - mean);
  }
  return {mean, 1 / std::sqrt(squares / static_cast<float>(n) + epsilon)};
}

template <class T>
struct Backward {
  std::int64_t cols;
  const T *dy, *x, *gain;
  const float *mean, *rstd;
  const T* residual_grad;
  T* dx;

  /// Writes row i of dx, if it is wanted, and adds its terms to dgain and dbias.
  void row(std::int64_t i, float* dgain, float* dbias) const {
    const T *d = dy + i * cols, *v = x + i * cols;
    const float m = mean[i], r = rstd[i], scale = 1 / static_cast<float>(cols);
    const auto normed = [m, r](Vec u) { return (u - m) * r; };
    const float mean_g = scale * sum(
                                     cols, [](Vec g, Vec w) { return g * w; }, d, gain);
    const float mean_gx = scale * sum(
                                      cols, [&](Vec g, Vec w, Vec u) { return g * w * normed(u); }, d, gain, v);

    map(
        cols, dgain, [&](Vec s, Vec g, Vec u) { return s + g * normed(u); }, dgain, d, v);
    map(
        cols, dbias, [](Vec s, Vec g) { return s + g; }, dbias, d);
    if (!dx) return;
    const auto through = [&](Vec g, Vec w, Vec u) { return r * (g * w - mean_g - normed(u) * mean_gx); };
    T* out = dx + i * cols;
    if (residual_grad) {
      map(
          cols, out, [&](Vec g, Vec w, Vec u, Vec p) { return through(g, w, u) + p; }, d, gain, v,
          residual_grad + i * cols);
    } else {
      map(cols, out, through, d, gain, v);
    }
  }
};

template <class T>
void normalize(const Rows& o, float epsilon, const T* x, const T* residual, const T* gain, const T* bias, T* sum, T* y,
               float* mean, float* rstd) {
  share(o.rows, grain_rows(o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i * o.cols;
      if (residual) map(o.cols, sum + row, plus, x + row, residual + row);
      const T* from = (residual ? sum : x) + row;
      const auto [m, r] = moments_of(o.cols, from, epsilon);
      const auto scaled = [m = m, r = r](Vec v, Vec g) { return (v - m) * r * g; };
      if (bias)
        map(
            o.cols, y + row, [&](Vec v, Vec g, Vec b) { return scaled(v, g) + b; }, from, gain, bias);
      else
        map(o.cols, y + row, scaled, from, gain);
      mean[i] = m;
      rstd[i] = r;
    }
  });
}

}  // namespace

void layer_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y, Mut mean,
                Mut rstd) {
  by_number(y.dtype, [&]<class T>(T) {
    normalize(o, epsilon, as<T>(x), as<T>(residual), as<T>(gain), as<T>(bias), as<T>(sum), as<T>(y), as<float>(mean),
              as<float>(rstd));
  });
}

void layer_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                         Const residual_grad, Mut dx, Mut dgain, Mut dbias) {
  by_number(dy.dtype, [&]<class T>(T) {
    const Backward<T> backward{
        o.cols, as<T>(dy), as<T>(x), as<T>(gain), as<float>(mean), as<float>(rstd), as<T>(residual_grad), as<T>(dx)};
    const ColumnSums sums(o, 2, [&](std::int64_t i, float* part) { backward.row(i, part, part + o.cols); });
    by_result_type<T>(type_of_present(dgain, dbias, dy.dtype), [&]<class Grad>(Grad) {
      if (dgain.data) sums.write(0, accumulate, as<Grad>(dgain));
      if (dbias.data) sums.write(1, accumulate, as<Grad>(dbias));
    });
  });
}

}  // namespace foreshard::kernels::cpu
