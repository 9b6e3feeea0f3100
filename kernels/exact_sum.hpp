#pragma once
#include <bit>

#include "kernels/backend.hpp"

namespace foreshard::kernels {

using ExactWords = std::span<std::int64_t, ExactSum::words>;

/// Limb i counts units of 2^(32·i − 352); the word behind the last limb is the mark.
namespace limb_format {
inline constexpr int limbs = ExactSum::words - 1, mark = limbs;
inline constexpr int bits = 32, lowest_exponent = -352;
inline constexpr std::int64_t mask = 0xFFFFFFFF;
}  // namespace limb_format

/// `add_exact`, for inner loops; word i is at words[i·stride].
constexpr void add_exact_here(std::int64_t* words, double value, std::int64_t stride = 1) {
  constexpr int bias = 1023, fraction_bits = 52, largest = bias + 300, least = bias - 300;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>((bits >> fraction_bits) & 0x7FF);
  if (exponent < least) return;
  if (exponent > largest) {
    ++words[limb_format::mark * stride];
    return;
  }
  const std::uint64_t hidden = std::uint64_t{1} << fraction_bits, mantissa = (bits & (hidden - 1)) | hidden;
  const auto position = static_cast<unsigned>(exponent - bias - fraction_bits - limb_format::lowest_exponent);
  const unsigned shift = position % limb_format::bits;
  const std::uint64_t low = mantissa << shift, high = (mantissa >> 1) >> (63 - shift);
  const std::int64_t sign = -static_cast<std::int64_t>(bits >> 63);  // 0, or −1: (m ^ sign) − sign is ±m
  const auto signed_of = [=](std::uint64_t m) { return (static_cast<std::int64_t>(m) ^ sign) - sign; };
  std::int64_t* limb = words + position / limb_format::bits * stride;
  limb[0] += signed_of(low & limb_format::mask);
  limb[stride] += signed_of(low >> limb_format::bits);
  limb[2 * stride] += signed_of(high);
}

constexpr void carry_exact_here(std::int64_t* words) {
  for (int i = 0; i + 1 < limb_format::limbs; ++i) {
    words[i + 1] += words[i] >> limb_format::bits;
    words[i] &= limb_format::mask;
  }
}

/// Carries until every limb but the last is in [0, 2^32): equal numbers then have equal words, and 2^30 such sums can
/// be merged without overflow. Uncarried words hold at least 2^29 additions.
inline void carry_exact(ExactWords sum) { carry_exact_here(sum.data()); }

}  // namespace foreshard::kernels
