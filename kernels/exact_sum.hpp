#pragma once
#include "kernels/backend.hpp"

namespace foreshard::kernels {

using ExactWords = std::span<std::int64_t, ExactSum::words>;

/// Carries until every limb but the last is in [0, 2^32): equal numbers then have equal words, and 2^30 such sums can
/// be merged without overflow. Uncarried words hold at least 2^29 additions.
void carry_exact(ExactWords sum);

/// Σ x² of 8 elements, each squared in double: ((0+4)+(2+6)) + ((1+5)+(3+7)).
template <class T>
double leaf_of_squares(const T* x) {
  double s[8];
  for (int i = 0; i < 8; ++i) s[i] = static_cast<double>(x[i]) * static_cast<double>(x[i]);
  for (int half = 4; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) s[i] += s[i + half];
  }
  return s[0];
}

/// The last leaf of an array of `count` elements: absent elements count as 0.
template <class T>
double last_leaf_of_squares(const T* x, std::int64_t count) {
  T padded[8] = {};
  for (std::int64_t i = 0; i < count; ++i) padded[i] = x[i];
  return leaf_of_squares(padded);
}

}  // namespace foreshard::kernels
