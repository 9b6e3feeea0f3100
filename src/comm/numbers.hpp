#pragma once
#include <bit>
#include <cstdint>

namespace foreshard::comm {

/// How an element in memory becomes the number that is summed, and back. Integers are summed unsigned: they wrap.
template <class T>
struct Plain {
  using Stored = T;
  using Summed = T;
  static Summed widen(Stored value) { return value; }
  static Stored narrow(Summed value) { return value; }
};

/// bfloat16: the upper half of a float. Rounds to nearest even; NaN stays (quiet) NaN.
struct BFloat16 {
  using Stored = std::uint16_t;
  using Summed = float;
  static float widen(std::uint16_t value) { return std::bit_cast<float>(std::uint32_t{value} << 16); }
  static std::uint16_t narrow(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16;
    const std::uint32_t quiet = bits >> 16 | 0x40U;
    return static_cast<std::uint16_t>((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded);
  }
};

/// IEEE binary16; the compiler's own conversions round to nearest even.
struct Float16 {
  using Stored = std::uint16_t;
  using Summed = float;
  static float widen(std::uint16_t value) { return static_cast<float>(std::bit_cast<_Float16>(value)); }
  static std::uint16_t narrow(float value) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(value)); }
};

}  // namespace foreshard::comm
