#pragma once
#include <bit>
#include <initializer_list>

#include "kernels/cpu/simd.hpp"

namespace foreshard::kernels::cpu {

/// eˣ to 1 unit in the last place, for any x: infinite above 88.73, zero below −86.98, NaN for NaN.
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2 (two-part ln 2 after Cody & Waite 1980), eʳ by the polynomial of Cephes' expf
/// (S. Moshier, https://www.netlib.org/cephes/), then 2ⁿ by the exponent field.
inline Vec exp(Vec x) {
  constexpr float log2_e = 1.44269504088896341F, ln2_high = 0.693359375F, ln2_low = -2.12194440e-4F;
  constexpr float round = 12582912.0F;  // 1.5·2^23: adding it leaves the nearest integer in the low bits
  constexpr float highest = 89.0F, lowest = -86.98F;

  const Vec bounded = x > highest ? broadcast(highest) : x;
  const Vec shifted = fma(bounded, broadcast(log2_e), broadcast(round));
  const Vec n = shifted - round;
  Vec r = fma(n, broadcast(-ln2_high), bounded);
  r = fma(n, broadcast(-ln2_low), r);

  Vec p = broadcast(1.9875691500e-4F);
  for (const float c : {1.3981999507e-3F, 8.3334519073e-3F, 4.1665795894e-2F, 1.6666665459e-1F, 5.0000001201e-1F}) {
    p = fma(p, r, broadcast(c));
  }
  p = fma(p, r * r, r) + 1.0F;

  // 2·p·2^(n−1), so that n = 128 still has an exponent.
  constexpr std::int32_t bias = 126 - std::bit_cast<std::int32_t>(round);
  const IntVec exponent = (std::bit_cast<IntVec>(shifted) + bias) << 23;
  const Vec result = (p + p) * std::bit_cast<Vec>(exponent);
  return x < lowest ? Vec{} : result;
}

/// eˣ to 4·10⁻⁶, for x below 88: what is rounded to bf16 afterwards needs no more. Zero below −86.98, NaN for NaN.
/// x = (n + f)·ln 2 with |f| ≤ 1/2; 2^f by the polynomial of degree 4 with 2⁰ = 1 whose largest relative error is
/// least.
inline Vec exp_for_bf16(Vec x) {
  constexpr float log2_e = 1.44269504088896341F, lowest = -86.98F;
  constexpr float round = 12582912.0F;  // as above

  const Vec shifted = fma(x, broadcast(log2_e), broadcast(round));
  const Vec f = fma(x, broadcast(log2_e), round - shifted);
  Vec p = broadcast(0.009582853F);
  for (const float c : {0.05590642475F, 0.24024098613F, 0.6931241934F, 1.0F}) p = fma(p, f, broadcast(c));
  const Vec result = std::bit_cast<Vec>(std::bit_cast<UintVec>(p) + (std::bit_cast<UintVec>(shifted) << 23));
  return x < lowest ? Vec{} : result;
}

/// The same of arrays.
void exp(std::int64_t count, const float* x, float* y);
void exp_for_bf16(std::int64_t count, const float* x, float* y);

}  // namespace foreshard::kernels::cpu
