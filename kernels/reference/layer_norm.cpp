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
void backward_row(std::int64_t n, const T* dy, const T* x, const T* gain, Computed<T> mean, Computed<T> rstd,
                  const T* residual_grad, T* dx) {
  const auto normed = [&](std::int64_t j) {
    return static_cast<double>((static_cast<Computed<T>>(x[j]) - mean) * rstd);
  };
  double mean_g = 0, mean_gx = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const double g = static_cast<double>(dy[j]) * static_cast<double>(gain[j]);
    mean_g += g / static_cast<double>(n);
    mean_gx += g * normed(j) / static_cast<double>(n);
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const double g = static_cast<double>(dy[j]) * static_cast<double>(gain[j]);
    const double through = static_cast<double>(rstd) * (g - mean_g - normed(j) * mean_gx);
    dx[j] = static_cast<T>(through + (residual_grad ? static_cast<double>(residual_grad[j]) : 0.0));
  }
}

template <class T, class Grad>
void gain_and_bias_grad(const Rows& o, bool accumulate, const T* dy, const T* x, const Computed<T>* mean,
                        const Computed<T>* rstd, Grad* dgain, Grad* dbias) {
  for (std::int64_t j = 0; j < o.cols; ++j) {
    double gain_sum = accumulate && dgain ? static_cast<double>(dgain[j]) : 0.0;
    double bias_sum = accumulate && dbias ? static_cast<double>(dbias[j]) : 0.0;
    for (std::int64_t i = 0; i < o.rows; ++i) {
      const std::int64_t at = i * o.cols + j;
      gain_sum +=
          static_cast<double>(dy[at]) * static_cast<double>((static_cast<Computed<T>>(x[at]) - mean[i]) * rstd[i]);
      bias_sum += static_cast<double>(dy[at]);
    }
    if (dgain) dgain[j] = static_cast<Grad>(gain_sum);
    if (dbias) dbias[j] = static_cast<Grad>(bias_sum);
  }
}

template <class T>
void normalize(const Rows& o, float epsilon, const T* x, const T* residual, const T* gain, const T* bias, T* sum, T* y,
               Computed<T>* mean, Computed<T>* rstd) {
  using C = Computed<T>;
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const std::int64_t row = i * o.cols;
    if (residual) {
      for (std::int64_t j = row; j < row + o.cols; ++j)
        sum[j] = static_cast<T>(static_cast<C>(x[j]) + static_cast<C>(residual[j]));
    }
    const T* from = (residual ? sum : x) + row;
    const double m = mean_of(from, o.cols);
    const double r = 1 / std::sqrt(variance_of(from, o.cols, m) + static_cast<double>(epsilon));
    mean[i] = static_cast<C>(m);
    rstd[i] = static_cast<C>(r);
    for (std::int64_t j = 0; j < o.cols; ++j) {
      y[row + j] = static_cast<T>((static_cast<double>(from[j]) - m) * r * static_cast<double>(gain[j]) +
                                  (bias ? static_cast<double>(bias[j]) : 0.0));
    }
  }
}

template <class T>
void input_grad(const Rows& o, const T* dy, const T* x, const T* gain, const Computed<T>* mean, const Computed<T>* rstd,
                const T* residual_grad, T* dx) {
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const std::int64_t row = i * o.cols;
    backward_row(o.cols, dy + row, x + row, gain, mean[i], rstd[i], residual_grad ? residual_grad + row : nullptr,
                 dx + row);
  }
}

}  // namespace

void layer_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Const bias, Mut sum, Mut y, Mut mean,
                Mut rstd) {
  by_number(y.dtype, [&]<class T>(T) {
    normalize(o, epsilon, as<T>(x), as<T>(residual), as<T>(gain), as<T>(bias), as<T>(sum), as<T>(y),
              as<Computed<T>>(mean), as<Computed<T>>(rstd));
  });
}

void layer_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const mean, Const rstd,
                         Const residual_grad, Mut dx, Mut dgain, Mut dbias) {
  by_number(dy.dtype, [&]<class T>(T) {
    const auto *m = as<Computed<T>>(mean), *r = as<Computed<T>>(rstd);
    by_result_type<T>(type_of_present(dgain, dbias, dy.dtype), [&]<class Grad>(Grad) {
      gain_and_bias_grad(o, accumulate, as<T>(dy), as<T>(x), m, r, as<Grad>(dgain), as<Grad>(dbias));
    });
    if (dx.data) input_grad(o, as<T>(dy), as<T>(x), as<T>(gain), m, r, as<T>(residual_grad), as<T>(dx));
  });
}

}  // namespace foreshard::kernels::reference
