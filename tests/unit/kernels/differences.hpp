#pragma once
#include <functional>

#include "arrays.hpp"

/// Numerical gradients, for the backward kernels of the reference in double.
namespace foreshard::kernels {

using Doubles = Array<double>;

inline constexpr double difference_error = 1e-6;  ///< of `differences`, relative to the largest element

inline double dot(const Doubles& a, const Doubles& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// d f / d x, by central differences of f, which reads x.
inline Doubles differences(Doubles& x, const std::function<double()>& f) {
  constexpr double step = 1e-5;
  Doubles gradient(x.size());
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + step;
    const double above = f();
    x[i] = kept - step;
    const double below = f();
    x[i] = kept;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

}  // namespace foreshard::kernels
