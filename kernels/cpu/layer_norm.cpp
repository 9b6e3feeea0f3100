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

Moments moments_of(std::int64_t n, const float* x, float epsilon) {
  const float mean = sum(
                         n, [](Vec v) { return v; }, x) /
                     static_cast<float>(n);
  const std::int64_t whole = n / lanes * lanes;
  const auto square = [mean](Vec v) { return (v - mean) * (v - mean); };
  float squares = sum(whole, square, x);
  for (std::int64_t j = whole; j < n; ++j) squares += (x[j] - mean) * (x[j] - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<float>(n) + epsilon)};
}

struct Backward {
  std::int64_t cols;
  const float *dy, *x, *gain, *mean, *rstd, *residual_grad;
  float* dx;

  /// Writes row i of dx and adds its terms to dgain and dbias.
  void row(std::int64_t i, float* dgain, float* dbias) const {
    const float *d = dy + i * cols, *v = x + i * cols;
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
    const auto through = [&](Vec g, Vec w, Vec u) { return r * (g * w - mean_g - normed(u) * mean_gx); };
    float* out = dx + i * cols;
    if (residual_grad) {
      map(
          cols, out, [&](Vec g, Vec w, Vec u, Vec p) { return through(g, w, u) + p; }, d, gain, v,
          residual_grad + i * cols);
    } else {
      map(cols, out, through, d, gain, v);
    }
  }
};

/// total[j] = (accumulate ? total[j] : 0) + Σ_b parts[b][j], with `stride` floats from part to part.
void sum_parts(std::int64_t n, std::int64_t parts, std::int64_t stride, const float* part, bool accumulate,
               float* total) {
  if (!accumulate) std::fill_n(total, n, 0.0F);
  for (std::int64_t b = 0; b < parts; ++b) {
    map(
        n, total, [](Vec s, Vec p) { return s + p; }, total, part + b * stride);
  }
}

}  // namespace

void layer_norm(const Rows& o, float epsilon, const float* x, const float* residual, const float* gain,
                const float* bias, float* sum, float* y, float* mean, float* rstd) {
  share(o.rows, grain_rows(o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t row = i * o.cols;
      if (residual)
        map(
            o.cols, sum + row, [](Vec u, Vec v) { return u + v; }, x + row, residual + row);
      const float* from = (residual ? sum : x) + row;
      const auto [m, r] = moments_of(o.cols, from, epsilon);
      map(
          o.cols, y + row, [m = m, r = r](Vec v, Vec g, Vec b) { return (v - m) * r * g + b; }, from, gain, bias);
      mean[i] = m;
      rstd[i] = r;
    }
  });
}

void layer_norm_backward(const Rows& o, bool accumulate, const float* dy, const float* x, const float* gain,
                         const float* mean, const float* rstd, const float* residual_grad, float* dx, float* dgain,
                         float* dbias) {
  const Backward backward{o.cols, dy, x, gain, mean, rstd, residual_grad, dx};
  const std::int64_t blocks = (o.rows + block_rows - 1) / block_rows, stride = 2 * o.cols;
  float* parts = thread_scratch().of<float>(static_cast<std::size_t>(blocks * stride));
  share(blocks, (grain_rows(o.cols) + block_rows - 1) / block_rows, [=, &o](std::int64_t begin, std::int64_t end) {
    for (std::int64_t b = begin; b < end; ++b) {
      float* part = parts + b * stride;
      std::fill_n(part, stride, 0.0F);
      const std::int64_t bottom = std::min(o.rows, (b + 1) * block_rows);
      for (std::int64_t i = b * block_rows; i < bottom; ++i) backward.row(i, part, part + o.cols);
    }
  });
  sum_parts(o.cols, blocks, stride, parts, accumulate, dgain);
  sum_parts(o.cols, blocks, stride, parts + o.cols, accumulate, dbias);
}

}  // namespace foreshard::kernels::cpu
