#include "kernels/reference/gelu.hpp"

#include <cmath>
#include <numbers>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

/// √(2/π), and the cubic coefficient of Hendrycks & Gimpel 2016, "Gaussian error linear units", section 2.
const double root = std::sqrt(2 / std::numbers::pi);
constexpr double cubic = 0.044715;

/// The normal distribution's probability below v.
double below(double v) { return 0.5 * std::erfc(-v / std::numbers::sqrt2); }

double exact_value(double v) { return v * below(v); }

double exact_slope(double v) { return below(v) + v * std::exp(-v * v / 2) / std::sqrt(2 * std::numbers::pi); }

void forward(std::int64_t count, Const x, Mut y, double (*f)(double)) {
  by_number(y.dtype, [&]<class T>(T) {
    const T* from = as<T>(x);
    T* to = as<T>(y);
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(f(static_cast<double>(from[i])));
  });
}

void backward(std::int64_t count, Const dy, Const x, Mut dx, double (*slope_at)(double)) {
  by_number(dx.dtype, [&]<class T>(T) {
    const T *grad = as<T>(dy), *from = as<T>(x);
    T* to = as<T>(dx);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<T>(static_cast<double>(grad[i]) * slope_at(static_cast<double>(from[i])));
  });
}

}  // namespace

double gelu_value(double v) { return 0.5 * v * (1 + std::tanh(root * (v + cubic * v * v * v))); }

double gelu_slope(double v) {
  const double t = std::tanh(root * (v + cubic * v * v * v));
  return 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * root * (1 + 3 * cubic * v * v);
}

void gelu(std::int64_t count, Const x, Mut y) { forward(count, x, y, gelu_value); }

void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) { backward(count, dy, x, dx, gelu_slope); }

void gelu_exact(std::int64_t count, Const x, Mut y) { forward(count, x, y, exact_value); }

void gelu_exact_backward(std::int64_t count, Const dy, Const x, Mut dx) { backward(count, dy, x, dx, exact_slope); }

}  // namespace foreshard::kernels::reference
