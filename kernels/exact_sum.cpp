#include "kernels/exact_sum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace foreshard::kernels {
namespace {

using namespace limb_format;

void negate(ExactWords sum) {
  for (int i = 0; i < limbs; ++i) sum[i] = -sum[i];
}

double magnitude_of(ExactWords carried) {
  double total = 0;
  for (int i = 0; i < limbs; ++i) {
    total += std::ldexp(static_cast<double>(carried[i]), bits * i + lowest_exponent);
  }
  return total;
}

}  // namespace

void add_exact(ExactWords sum, double value) { add_exact_here(sum.data(), value); }

double value_of(std::span<const std::int64_t, ExactSum::words> sum) {
  if (sum[mark] != 0) return std::numeric_limits<double>::quiet_NaN();
  std::array<std::int64_t, ExactSum::words> words;
  std::ranges::copy(sum, words.begin());
  carry_exact(words);
  if (words[limbs - 1] >= 0) return magnitude_of(words);
  negate(words);
  carry_exact(words);
  return -magnitude_of(words);
}

}  // namespace foreshard::kernels
