#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "base/half.hpp"

/// Sixteen numbers of 16 bits at once, widened to floats and rounded to nearest even, as base/half.hpp does one by one.
namespace foreshard::kernels::cpu {

inline constexpr std::int64_t lanes = 16;
typedef float Vec __attribute__((vector_size(64)));
typedef std::int32_t IntVec __attribute__((vector_size(64)));
typedef std::uint32_t UintVec __attribute__((vector_size(64)));
typedef std::uint16_t HalfVec __attribute__((vector_size(32)));

template <class Half>
HalfVec halves_at(const Half* p) {
  HalfVec bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}
template <class Half>
void put_halves(Half* p, HalfVec bits) {
  std::memcpy(p, &bits, sizeof bits);
}

/// bf16: a zero below each number. One shuffle, where widening and shifting would be several instructions.
inline Vec widened(HalfVec bits) {
  return std::bit_cast<Vec>(__builtin_shufflevector(HalfVec{}, bits, 0, 16, 0, 17, 0, 18, 0, 19, 0, 20, 0, 21, 0, 22, 0,
                                                    23, 0, 24, 0, 25, 0, 26, 0, 27, 0, 28, 0, 29, 0, 30, 0, 31));
}
inline HalfVec rounded(Vec v) {
  const auto bits = std::bit_cast<UintVec>(v);
  const UintVec near = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16, quiet = bits >> 16 | 0x40U;
  return __builtin_convertvector(v == v ? near : quiet, HalfVec);
}

#if defined(__AVX512F__)
// Masked, with all lanes kept: GCC 12 takes the plain forms for uses of an uninitialized register.
inline constexpr __mmask16 all_lanes = 0xFFFF;
inline Vec widened_f16(HalfVec bits) {
  return std::bit_cast<Vec>(_mm512_maskz_cvtph_ps(all_lanes, std::bit_cast<__m256i>(bits)));
}
inline HalfVec rounded_f16(Vec v) {
  return std::bit_cast<HalfVec>(
      _mm512_maskz_cvtps_ph(all_lanes, std::bit_cast<__m512>(v), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#else
inline Vec widened_f16(HalfVec bits) {
  Vec v = {};
  for (int i = 0; i < lanes; ++i) v[i] = static_cast<float>(std::bit_cast<_Float16>(std::uint16_t{bits[i]}));
  return v;
}
inline HalfVec rounded_f16(Vec v) {
  HalfVec bits = {};
  for (int i = 0; i < lanes; ++i) bits[i] = Float16(v[i]).bits;
  return bits;
}
#endif

}  // namespace foreshard::kernels::cpu
