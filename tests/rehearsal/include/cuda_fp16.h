#pragma once
#include <bit>
#include <cstdint>

#include "vector_types.h"

/// IEEE binary16 of the CUDA toolkit: conversions to nearest even; NaN becomes 0x7FFF, as there.
struct __half {
  std::uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};
using half = __half;

inline __half __ushort_as_half(unsigned short bits) { return {bits}; }
inline unsigned short __half_as_ushort(__half value) { return value.bits; }
inline float __half2float(__half value) { return static_cast<float>(std::bit_cast<_Float16>(value.bits)); }
inline __half __float2half_rn(float value) {
  if (value != value) return {0x7fff};
  return {std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))};
}
inline __half __float2half(float value) { return __float2half_rn(value); }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline __half2 __float22half2_rn(float2 value) { return __floats2half2_rn(value.x, value.y); }
inline float2 __half22float2(__half2 value) { return {__half2float(value.x), __half2float(value.y)}; }
