#include <cmath>
#include <numbers>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

/// √(2/π), and the cubic coefficient of Hendrycks & Gimpel 2016, "Gaussian error linear units", section 2.
const double root = std::sqrt(2 / std::numbers::pi);
constexpr double cubic = 0.044715;

double value(double v) { return 0.5 * v * (1 + std::tanh(root * (v + cubic * v * v * v))); }

double slope(double v) {
  const double t = std::tanh(root * (v + cubic * v * v * v));
  return 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * root * (1 + 3 * cubic * v * v);
}

}  // namespace

void gelu(std::int64_t count, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) {
    const T* from = as<T>(x);
    T* to = as<T>(y);
    for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(value(static_cast<double>(from[i])));
  });
}

void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) {
  by_number(dx.dtype, [&]<class T>(T) {
    const T *grad = as<T>(dy), *from = as<T>(x);
    T* to = as<T>(dx);
    for (std::int64_t i = 0; i < count; ++i) {
      to[i] = static_cast<T>(static_cast<double>(grad[i]) * slope(static_cast<double>(from[i])));
    }
  });
}

}  // namespace foreshard::kernels::reference
