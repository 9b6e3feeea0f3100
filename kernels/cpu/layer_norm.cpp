#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/simd.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

constexpr std::int64_t block_rows = 32;  // dgain and dbias are summed by blocks of rows, whatever the team

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

/// grad[j] = (accumulate ? grad[j] : 0) + Σ_b parts[b][j], with `stride` floats from part to part.
template <class Grad>
void sum_parts(std::int64_t n, std::int64_t parts, std::int64_t stride, const float* part, bool accumulate,
               Grad* grad) {
  for (std::int64_t j = 0; j < n; j += strip_cols) {
    const std::int64_t width = std::min(strip_cols, n - j);
    float total[strip_cols] = {};
    if (accumulate) map(width, total, same, grad + j);
    for (std::int64_t b = 0; b < parts; ++b) map(width, total, plus, total, part + b * stride + j);
    map(width, grad + j, same, total);
  }
}

template <class T>
void normalize(const Rows& o, float epsilon, const T* x, const T* residual, const T* gain, const T* bias, T* sum, T* y,
               float* mean, float* rstd) {
  share(o.rows, grain_rows(o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i * o.cols;
      if (residual) map(o.cols, sum + row, plus, x + row, residual + row);
      const T* from = (residual ? sum : x) + row;
      const auto [m, r] = moments_of(o.cols, from, epsilon);
      map(
          o.cols, y + row, [m = m, r = r](Vec v, Vec g, Vec b) { return (v - m) * r * g + b; }, from, gain, bias);
      mean[i] = m;
      rstd[i] = r;
    }
  });
}

template <class T, class Grad>
void differentiate(const Rows& o, bool accumulate, const Backward<T>& backward, Grad* dgain, Grad* dbias) {
  const std::int64_t blocks = (o.rows + block_rows - 1) / block_rows, stride = 2 * o.cols;
  float* parts = thread_scratch().of<float>(static_cast<std::size_t>(blocks * stride));
  share(blocks, (grain_rows(o.cols) + block_rows - 1) / block_rows,
        [=, &o, &backward](std::int64_t begin, std::int64_t end) {
          for (std::int64_t b = begin; b < end; ++b) {
            float* part = parts + b * stride;
            std::fill_n(part, stride, 0.0F);
            const std::int64_t bottom = std::min(o.rows, (b + 1) * block_rows);
            for (std::int64_t i = b * block_rows; i < bottom; ++i) backward.row(i, part, part + o.cols);
          }
        });
  if (dgain) sum_parts(o.cols, blocks, stride, parts, accumulate, dgain);
  if (dbias) sum_parts(o.cols, blocks, stride, parts + o.cols, accumulate, dbias);
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
    by_result_type<T>(type_of_present(dgain, dbias, dy.dtype), [&]<class Grad>(Grad) {
      differentiate(o, accumulate, backward, as<Grad>(dgain), as<Grad>(dbias));
    });
  });
}

}  // namespace foreshard::kernels::cpu
