#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

/// Numbers of 16 bits: stored and sent as such, computed with in float or double. Conversions round once, to nearest
/// even; what is too large becomes infinite; NaN stays (quiet) NaN.
namespace foreshard {

/// `value` as a float that is odd in its last bit if something was cut off ("rounding to odd": Boldo & Melquiond 2008,
/// "Emulation of FMA and correctly rounded sums"), so that rounding it once more, to fewer bits, rounds `value`
/// correctly.
inline float rounded_to_odd(double value) {
  const auto near = static_cast<float>(value);
  const auto bits = std::bit_cast<std::uint32_t>(near);
  if (!std::isfinite(near) || static_cast<double>(near) == value || (bits & 1U) != 0) return near;
  return std::bit_cast<float>(std::abs(static_cast<double>(near)) < std::abs(value) ? bits + 1 : bits - 1);
}

/// bfloat16: the upper half of a float; 8 significant bits and the range of float.
struct BFloat16 {
  std::uint16_t bits;

  BFloat16() = default;
  explicit BFloat16(float value) : bits(upper_half(std::bit_cast<std::uint32_t>(value))) {}
  explicit BFloat16(double value) : BFloat16(rounded_to_odd(value)) {}
  explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }

 private:
  static std::uint16_t upper_half(std::uint32_t value) {
    const std::uint32_t rounded = (value + 0x7fffU + (value >> 16 & 1U)) >> 16;
    const std::uint32_t quiet = value >> 16 | 0x40U;
    return static_cast<std::uint16_t>((value & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
  }
};

/// IEEE binary16: 11 significant bits, at most 65504, subnormal below 2^-14; the compiler's own conversions.
struct Float16 {
  std::uint16_t bits;

  Float16() = default;
  explicit Float16(float value) : bits(std::bit_cast<std::uint16_t>(static_cast<_Float16>(value))) {}
  explicit Float16(double value) : Float16(rounded_to_odd(value)) {}
  explicit operator float() const { return static_cast<float>(std::bit_cast<_Float16>(bits)); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

}  // namespace foreshard
