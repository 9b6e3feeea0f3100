#include <cmath>
#include <numbers>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

/// √(2/π), and the cubic coefficient of Hendrycks & Gimpel 2016, "Gaussian error linear units", section 2.
const double root = std::sqrt(2 / std::numbers::pi);
constexpr double cubic = 0.044715;

}  // namespace

template <class T>
void gelu(std::int64_t count, const T* x, T* y) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = static_cast<double>(x[i]);
    y[i] = static_cast<T>(0.5 * v * (1 + std::tanh(root * (v + cubic * v * v * v))));
  }
}

template <class T>
void gelu_backward(std::int64_t count, const T* dy, const T* x, T* dx) {
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = static_cast<double>(x[i]);
    const double t = std::tanh(root * (v + cubic * v * v * v));
    const double slope = 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * root * (1 + 3 * cubic * v * v);
    dx[i] = static_cast<T>(static_cast<double>(dy[i]) * slope);
  }
}

template void gelu(std::int64_t, const float*, float*);
template void gelu(std::int64_t, const double*, double*);
template void gelu_backward(std::int64_t, const float*, const float*, float*);
template void gelu_backward(std::int64_t, const double*, const double*, double*);

}  // namespace foreshard::kernels::reference
