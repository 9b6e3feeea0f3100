#include <cmath>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T>
double mean_square(const T* x, std::int64_t n) {
  double sum = 0;
  for (std::int64_t j = 0; j < n; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
  return sum / static_cast<double>(n);
}

template <class T>
void normalize(const Rows& o, float epsilon, const T* x, const T* residual, const T* gain, T* sum, T* y,
               Computed<T>* rstd) {
  using C = Computed<T>;
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const std::int64_t row = i * o.cols;
    if (residual) {
      for (std::int64_t j = row; j < row + o.cols; ++j)
        sum[j] = static_cast<T>(static_cast<C>(x[j]) + static_cast<C>(residual[j]));
    }
    const T* from = (residual ? sum : x) + row;
    const double r = 1 / std::sqrt(mean_square(from, o.cols) + static_cast<double>(epsilon));
    rstd[i] = static_cast<C>(r);
    for (std::int64_t j = 0; j < o.cols; ++j)
      y[row + j] = static_cast<T>(static_cast<double>(from[j]) * r * static_cast<double>(gain[j]));
  }
}

/// dx of one row: rstd·(g − x̂·mean(g·x̂)) with g = dy·gain, x̂ = x·rstd.
template <class T>
void backward_row(std::int64_t n, const T* dy, const T* x, const T* gain, double rstd, const T* residual_grad, T* dx) {
  double mean_gx = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    mean_gx += static_cast<double>(dy[j]) * static_cast<double>(gain[j]) * static_cast<double>(x[j]) * rstd /
               static_cast<double>(n);
  }
  for (std::int64_t j = 0; j < n; ++j) {
    const double g = static_cast<double>(dy[j]) * static_cast<double>(gain[j]);
    const double through = rstd * (g - static_cast<double>(x[j]) * rstd * mean_gx);
    dx[j] = static_cast<T>(through + (residual_grad ? static_cast<double>(residual_grad[j]) : 0.0));
  }
}

template <class T, class Grad>
void gain_grad(const Rows& o, bool accumulate, const T* dy, const T* x, const Computed<T>* rstd, Grad* dgain) {
  for (std::int64_t j = 0; j < o.cols; ++j) {
    double sum = accumulate ? static_cast<double>(dgain[j]) : 0.0;
    for (std::int64_t i = 0; i < o.rows; ++i) {
      const std::int64_t at = i * o.cols + j;
      sum += static_cast<double>(dy[at]) * static_cast<double>(x[at]) * static_cast<double>(rstd[i]);
    }
    dgain[j] = static_cast<Grad>(sum);
  }
}

template <class T>
void input_grad(const Rows& o, const T* dy, const T* x, const T* gain, const Computed<T>* rstd, const T* residual_grad,
                T* dx) {
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const std::int64_t row = i * o.cols;
    backward_row(o.cols, dy + row, x + row, gain, static_cast<double>(rstd[i]),
                 residual_grad ? residual_grad + row : nullptr, dx + row);
  }
}

}  // namespace

void rms_norm(const Rows& o, float epsilon, Const x, Const residual, Const gain, Mut sum, Mut y, Mut rstd) {
  by_number(y.dtype, [&]<class T>(T) {
    normalize(o, epsilon, as<T>(x), as<T>(residual), as<T>(gain), as<T>(sum), as<T>(y), as<Computed<T>>(rstd));
  });
}

void rms_norm_backward(const Rows& o, bool accumulate, Const dy, Const x, Const gain, Const rstd, Const residual_grad,
                       Mut dx, Mut dgain) {
  by_number(dy.dtype, [&]<class T>(T) {
    const auto* r = as<Computed<T>>(rstd);
    by_result_type<T>(type_of_present(dgain, {}, dy.dtype), [&]<class Grad>(Grad) {
      if (dgain.data) gain_grad(o, accumulate, as<T>(dy), as<T>(x), r, as<Grad>(dgain));
    });
    if (dx.data) input_grad(o, as<T>(dy), as<T>(x), as<T>(gain), r, as<T>(residual_grad), as<T>(dx));
  });
}

}  // namespace foreshard::kernels::reference
