#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>

#include "base/dtype.hpp"

/// Test data, and an independent account of what collectives must give: one element at a time, by recursion.
namespace foreshard::comm::testing {

/// Element conversions by arithmetic on exponents, apart from the code under test.
struct Bf16 {
  std::uint16_t bits;
};
struct F16 {
  std::uint16_t bits;
};

/// The nearest multiple of 2^(e − fraction_bits) to `value`, ties to even, where 2^e <= |value| < 2^(e+1), e at least
/// `lowest`.
inline double rounded(double value, int fraction_bits, int lowest) {
  if (value == 0.0) return value;
  const double unit = std::ldexp(1.0, std::max(std::ilogb(value), lowest) - fraction_bits);
  return std::nearbyint(value / unit) * unit;
}

inline float wide(float value) { return value; }
inline double wide(double value) { return value; }
inline std::int32_t wide(std::int32_t value) { return value; }
inline std::int64_t wide(std::int64_t value) { return value; }
inline float wide(Bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }
inline float wide(F16 value) {
  const int exponent = value.bits >> 10 & 31, fraction = value.bits & 1023;
  const double magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return static_cast<float>(value.bits >> 15 ? -magnitude : magnitude);
}

template <class T>
T narrow(decltype(wide(T{})) value) {
  return value;
}
template <>
inline Bf16 narrow<Bf16>(float value) {
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(rounded(value, 7, -126))) >> 16)};
}
template <>
inline F16 narrow<F16>(float value) {
  const double near = std::abs(rounded(value, 10, -14));
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (near < 0x1p-14) return {static_cast<std::uint16_t>(sign | static_cast<int>(near * 0x1p24))};
  const int exponent = std::ilogb(near);
  return {static_cast<std::uint16_t>(sign | (exponent + 15) << 10 |
                                     static_cast<int>((std::ldexp(near, -exponent) - 1) * 1024))};
}

template <class T>
constexpr DType dtype_of = DType::f32;
template <>
inline constexpr DType dtype_of<double> = DType::f64;
template <>
inline constexpr DType dtype_of<Bf16> = DType::bf16;
template <>
inline constexpr DType dtype_of<F16> = DType::f16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::i32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::i64;

/// 64 well-mixed bits. Source: finalizer of SplitMix64, Steele, Lea, Flood, OOPSLA 2014.
inline std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9ULL;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebULL;
  return bits ^ bits >> 31;
}

/// Element `index` of `rank`: numbers of mixed sizes and signs, so that the order of additions shows in the last bits.
template <class T>
T element(int rank, std::int64_t index, int salt = 0) {
  const std::uint64_t seed = static_cast<std::uint64_t>(salt) << 50 | static_cast<std::uint64_t>(rank) << 36;
  const std::uint64_t bits = mixed((seed + static_cast<std::uint64_t>(index) + 1) * 0x9e3779b97f4a7c15ULL);
  const std::int64_t number =
      (static_cast<std::int64_t>(bits) >> 34) * (1 << (bits & 7));  // 30 bits and a sign, times up to 2^7
  if constexpr (std::is_integral_v<T>)
    return static_cast<T>(number / 1024);
  else
    return narrow<T>(static_cast<decltype(wide(T{}))>(static_cast<double>(number) * 0x1p-30));
}

/// The canonical tree over values[0, n): left takes the largest power of two below n.
template <class W>
W tree(std::span<W> values) {
  if (values.size() == 1) return values[0];
  std::size_t left = 1;
  while (left * 2 < values.size()) left *= 2;
  return tree<W>(values.first(left)) + tree<W>(values.subspan(left));
}

/// What a reduction of elements of type T leaves where `before` was.
template <class T, class To = T>
To expected_sum(std::span<const int> members, std::int64_t index, bool accumulate, To before, int salt = 0) {
  using Wide = decltype(wide(T{}));
  std::array<Wide, 64> values;
  for (std::size_t m = 0; m < members.size(); ++m) values[m] = wide(element<T>(members[m], index, salt));
  const Wide sum = tree<Wide>(std::span(values).first(members.size()));
  return narrow<To>(accumulate ? wide(before) + sum : sum);
}

}  // namespace foreshard::comm::testing
