#include <cmath>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T>
double mean_of(const T* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += static_cast<double>(x[j]);
  return sum / static_cast<double>(n);
}

template <class T>
double variance_of(const T* x, std::int64_t n, double mean) {
  double sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += (static_cast<double>(x[j]) - mean) * (static_cast<double>(x[j]) - mean);
  return sum / static_cast<double>(n);
}

/// dx of one row: rstd·(g − mean(g) − x̂·mean(g·x̂)) with g = dy·gain, x̂ = (x − mean)·rstd.
template <class T>
void backward_row(std::int64_t n, const T* dy, const T* x, const T* gain, T mean, T rstd, const T* residual_grad,
                  T* dx) {
  double mean_g = 0, mean_gx = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const double g = static_cast<double>(dy[j]) * static_cast<double>(gain[j]);
    mean_g += g / static_cast<double>(n);
    mean_gx += g * static_cast<double>((x[j] - mean) * rstd) / static_cast<double>(n);
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const double g = static_cast<double>(dy[j]) * static_cast<double>(gain[j]);
    const double through =
        static_cast<double>(rstd) * (g - mean_g - static_cast<double>((x[j] - mean) * rstd) * mean_gx);
    dx[j] = static_cast<T>(through + (residual_grad ? static_cast<double>(residual_grad[j]) : 0.0));
  }
}

template <class T>
void gain_and_bias_grad(const Rows& o, bool accumulate, const T* dy, const T* x, const T* mean, const T* rstd, T* dgain,
                        T* dbias) {
  for (std::int64_t j = 0; j < o.cols; ++j) {
    double gain_sum = accumulate ? dgain[j] : 0.0, bias_sum = accumulate ? dbias[j] : 0.0;
    for (std::int64_t i = 0; i < o.rows; ++i) {
      const std::int64_t at = i * o.cols + j;
      gain_sum += static_cast<double>(dy[at]) * static_cast<double>((x[at] - mean[i]) * rstd[i]);
      bias_sum += static_cast<double>(dy[at]);
    }
    dgain[j] = static_cast<T>(gain_sum);
    dbias[j] = static_cast<T>(bias_sum);
  }
}

}  // namespace

template <class T>
void layer_norm(const Rows& o, float epsilon, const T* x, const T* residual, const T* gain, const T* bias, T* sum, T* y,
                T* mean, T* rstd) {
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const std::int64_t row = i * o.cols;
    if (residual) {
      for (std::int64_t j = 0; j < o.cols; ++j) sum[row + j] = x[row + j] + residual[row + j];
    }
    const T* from = (residual ? sum : x) + row;
    const double m = mean_of(from, o.cols);
    const double r = 1 / std::sqrt(variance_of(from, o.cols, m) + static_cast<double>(epsilon));
    mean[i] = static_cast<T>(m);
    rstd[i] = static_cast<T>(r);
    for (std::int64_t j = 0; j < o.cols; ++j) {
      y[row + j] = static_cast<T>((static_cast<double>(from[j]) - m) * r * static_cast<double>(gain[j]) +
                                  static_cast<double>(bias[j]));
    }
  }
}

template <class T>
void layer_norm_backward(const Rows& o, bool accumulate, const T* dy, const T* x, const T* gain, const T* mean,
                         const T* rstd, const T* residual_grad, T* dx, T* dgain, T* dbias) {
  gain_and_bias_grad(o, accumulate, dy, x, mean, rstd, dgain, dbias);
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const std::int64_t row = i * o.cols;
    backward_row(o.cols, dy + row, x + row, gain, mean[i], rstd[i], residual_grad ? residual_grad + row : nullptr,
                 dx + row);
  }
}

template void layer_norm(const Rows&, float, const float*, const float*, const float*, const float*, float*, float*,
                         float*, float*);
template void layer_norm(const Rows&, float, const double*, const double*, const double*, const double*, double*,
                         double*, double*, double*);
template void layer_norm_backward(const Rows&, bool, const float*, const float*, const float*, const float*,
                                  const float*, const float*, float*, float*, float*);
template void layer_norm_backward(const Rows&, bool, const double*, const double*, const double*, const double*,
                                  const double*, const double*, double*, double*, double*);

}  // namespace foreshard::kernels::reference
