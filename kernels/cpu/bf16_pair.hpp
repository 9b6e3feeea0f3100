#pragma once
#include "kernels/cpu/simd.hpp"

/// Words of 32 bits that hold two bf16 numbers, for processors that multiply and add both at once (AVX512_BF16).
/// Without these instructions the same is computed step by step; then a number and a sum may differ in their last bit.
namespace foreshard::kernels::cpu {

struct BFloat16Pair {
  std::uint32_t bits;  ///< the first number is in the low half
};

/// Sixteen pairs.
typedef std::uint16_t PairVec __attribute__((vector_size(64)));

inline PairVec load(const BFloat16Pair* p) {
  PairVec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(BFloat16Pair* p, PairVec v) { std::memcpy(p, &v, sizeof v); }
inline PairVec broadcast(BFloat16Pair x) { return std::bit_cast<PairVec>(UintVec{} + x.bits); }

/// Two rows of sixteen numbers, rounded: one behind the other.
#if defined(__AVX512BF16__)
inline PairVec rounded_rows(Vec first, Vec second) {
  return std::bit_cast<PairVec>(_mm512_cvtne2ps_pbh(std::bit_cast<__m512>(second), std::bit_cast<__m512>(first)));
}
/// sum + Σ of the two products, in each lane.
inline Vec fma(PairVec a, PairVec b, Vec sum) {
  return std::bit_cast<Vec>(
      _mm512_dpbf16_ps(std::bit_cast<__m512>(sum), std::bit_cast<__m512bh>(a), std::bit_cast<__m512bh>(b)));
}
#else
inline PairVec rounded_rows(Vec first, Vec second) {
  const HalfVec rows[2] = {rounded(first), rounded(second)};
  return std::bit_cast<PairVec>(rows);
}
inline Vec fma(PairVec a, PairVec b, Vec sum) {
  const auto x = std::bit_cast<UintVec>(a), y = std::bit_cast<UintVec>(b);
  const auto low = [](UintVec v) { return std::bit_cast<Vec>(v << 16); };
  const auto high = [](UintVec v) { return std::bit_cast<Vec>(v & 0xffff0000U); };
  return fma(high(x), high(y), fma(low(x), low(y), sum));
}
#endif

/// Of two rows of sixteen numbers one behind the other: the pairs of those with the same place.
inline PairVec stacked(PairVec rows) {
  return __builtin_shufflevector(rows, rows, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23, 8, 24, 9, 25, 10,
                                 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}

/// Where two rows one behind the other belong.
inline void store_rows(PairVec rows, BFloat16Pair* first, BFloat16Pair* second) {
  HalfVec halves[2];
  std::memcpy(halves, &rows, sizeof rows);
  std::memcpy(first, &halves[0], sizeof halves[0]);
  std::memcpy(second, &halves[1], sizeof halves[1]);
}

}  // namespace foreshard::kernels::cpu
