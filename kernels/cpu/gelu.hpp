#pragma once
#include "kernels/cpu/exp.hpp"

/// GELU in its tanh form, x·gate(x): 0.5·(1 + tanh u) = 1 / (1 + e^−2u) with u = √(2/π)·(x + 0.044715·x³).
namespace foreshard::kernels::cpu {

inline Vec gelu_exponent(Vec x, float cubic_factor) {
  constexpr float linear = 2 * 0.797884560802865356F, cubic = linear * 0.044715F;
  return linear + cubic_factor * cubic * x * x;
}

inline Vec gelu_gate(Vec x) { return 1.0F / (1.0F + exp(-x * gelu_exponent(x, 1))); }

inline Vec gelu_slope(Vec x) {
  const Vec s = gelu_gate(x);
  return s + x * s * (1.0F - s) * gelu_exponent(x, 3);
}

}  // namespace foreshard::kernels::cpu
