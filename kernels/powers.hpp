#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/exact_sum.hpp"

/// Σ |x|^p for norms, in leaves of 8 consecutive elements. A leaf is summed in double, pairwise, the same way
/// everywhere: products must not be fused with additions, so files that use this are compiled with -ffp-contract=off.
namespace foreshard::kernels {

/// Cubes are taken of 2^−30·|x|, so that those of every finite float fit an exact sum. What is below 2^−70 in
/// magnitude then counts as 0.
inline constexpr double cube_scale = 0x1p-30;

/// |x|^p of a double, or of each element of a vector of them.
template <int power, class V>
constexpr V power_of(V magnitude) {
  if constexpr (power == 1) return magnitude;
  if constexpr (power == 2) return magnitude * magnitude;
  if constexpr (power == 3) {
    const V scaled = magnitude * cube_scale;
    return scaled * scaled * scaled;
  }
}

/// Σ |x|^p of 8 elements: ((0+4)+(2+6)) + ((1+5)+(3+7)).
template <int power, class T>
constexpr double leaf_of_powers(const T* x) {
  double s[8];
  for (int i = 0; i < 8; ++i) s[i] = power_of<power>(std::abs(static_cast<double>(x[i])));
  for (int half = 4; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) s[i] += s[i + half];
  }
  return s[0];
}

/// The last leaf of an array of `count` elements: absent elements count as 0.
template <int power, class T>
double last_leaf_of_powers(const T* x, std::int64_t count) {
  T padded[8] = {};
  for (std::int64_t i = 0; i < count; ++i) padded[i] = x[i];
  return leaf_of_powers<power>(padded);
}

/// The bits of |x|: as integers they are ordered as the numbers are, with what is not a number above infinity.
constexpr std::int64_t magnitude_bits(double x) { return std::bit_cast<std::int64_t>(x) & INT64_MAX; }

}  // namespace foreshard::kernels
