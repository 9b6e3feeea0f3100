#include "kernels/exact_sum.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace foreshard::kernels {
namespace {

// Limb i counts units of 2^(32·i − 352); the word behind the last limb is the mark.
constexpr int limbs = ExactSum::words - 1;
constexpr int mark = limbs;
constexpr int lowest_exponent = -352;
constexpr int limb_bits = 32;
constexpr std::int64_t limb_mask = 0xFFFFFFFF;

constexpr int double_bias = 1023, double_fraction = 52;
constexpr int least_biased = double_bias - 300, most_biased = double_bias + 300;

struct Parts {
  int biased;              // exponent field
  std::uint64_t mantissa;  // with the hidden bit
  std::int64_t sign;       // 0, or −1 for a negative number
};

Parts parts_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << double_fraction) - 1);
  return {static_cast<int>((bits >> double_fraction) & 0x7FF), fraction | (std::uint64_t{1} << double_fraction),
          -static_cast<std::int64_t>(bits >> 63)};
}

std::int64_t with_sign(std::uint64_t magnitude, std::int64_t sign) {
  return (static_cast<std::int64_t>(magnitude) ^ sign) - sign;
}

void negate(ExactWords sum) {
  for (int i = 0; i < limbs; ++i) sum[i] = -sum[i];
}

double magnitude_of(ExactWords carried) {
  double total = 0;
  for (int i = 0; i < limbs; ++i) {
    total += std::ldexp(static_cast<double>(carried[i]), limb_bits * i + lowest_exponent);
  }
  return total;
}

}  // namespace

void add_exact(ExactWords sum, double value) {
  const auto [biased, mantissa, sign] = parts_of(value);
  if (biased < least_biased) return;
  if (biased > most_biased) {
    ++sum[mark];
    return;
  }
  const int position = biased - double_bias - double_fraction - lowest_exponent;
  const int shift = position % limb_bits;
  const std::uint64_t low = mantissa << shift, high = (mantissa >> 1) >> (63 - shift);
  std::int64_t* limb = sum.data() + position / limb_bits;
  limb[0] += with_sign(low & limb_mask, sign);
  limb[1] += with_sign(low >> limb_bits, sign);
  limb[2] += with_sign(high, sign);
}

void carry_exact(ExactWords sum) {
  for (int i = 0; i + 1 < limbs; ++i) {
    sum[i + 1] += sum[i] >> limb_bits;
    sum[i] &= limb_mask;
  }
}

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
