// Conversions of all 65536 numbers of each format, and of what lies between neighbours, against arithmetic on
// exponents.
#include "base/half.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace foreshard {
namespace {

struct Format {
  int fraction_bits, exponent_bits;
};

template <class T>
constexpr Format format_of{7, 8};
template <>
constexpr Format format_of<Float16>{10, 5};

/// What `bits` stand for by the definition of IEEE 754, section 3.4.
template <class T>
double value_of(int bits) {
  constexpr auto f = format_of<T>;
  constexpr int bias = (1 << (f.exponent_bits - 1)) - 1, largest = (1 << f.exponent_bits) - 1;
  const int exponent = bits >> f.fraction_bits & largest, fraction = bits & ((1 << f.fraction_bits) - 1);
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == largest) return fraction == 0 ? sign * INFINITY : NAN;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - f.fraction_bits);
  return sign * std::ldexp((1 << f.fraction_bits) + fraction, exponent - bias - f.fraction_bits);
}

template <class T>
T from_bits(int bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

template <class T>
struct Half : testing::Test {};
using Halves = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(Half, Halves);

TYPED_TEST(Half, EveryNumberSurvivesTheWayThere) {
  for (int bits = 0; bits < 65536; ++bits) {
    const TypeParam half = from_bits<TypeParam>(bits);
    const double value = value_of<TypeParam>(bits);
    const auto wide = static_cast<float>(half);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(wide));
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(wide)))) << bits;
      continue;
    }
    ASSERT_EQ(static_cast<double>(wide), value) << bits;
    ASSERT_EQ(std::signbit(wide), bits >> 15 != 0);
    ASSERT_EQ(TypeParam(wide).bits, bits);
    ASSERT_EQ(TypeParam(value).bits, bits);
  }
}

/// Between each number and the next larger in magnitude (behind the largest: infinity, as if it were the next power of
/// two) lie a tie, which goes to the even one, and what is just below and just above it.
TYPED_TEST(Half, WhatLiesBetweenGoesToTheNearest) {
  constexpr auto f = format_of<TypeParam>;
  constexpr int infinity = ((1 << f.exponent_bits) - 1) << f.fraction_bits;
  for (int bits = 0; bits < infinity; ++bits) {
    const double low = value_of<TypeParam>(bits);
    const double step = bits + 1 < infinity ? value_of<TypeParam>(bits + 1) - low : low - value_of<TypeParam>(bits - 1);
    const double tie = low + step / 2;
    const int even = bits + bits % 2;
    for (const int sign : {0, 0x8000}) {
      const double s = sign == 0 ? 1 : -1;
      ASSERT_EQ(TypeParam(s * tie).bits, sign | even);
      ASSERT_EQ(TypeParam(s * std::nextafter(tie, 0)).bits, sign | bits);
      ASSERT_EQ(TypeParam(s * std::nextafter(tie, INFINITY)).bits, sign | (bits + 1));
      const auto near = static_cast<float>(tie);
      if (near != tie) continue;  // below the least subnormal float
      ASSERT_EQ(TypeParam(static_cast<float>(s) * near).bits, sign | even);
      ASSERT_EQ(TypeParam(static_cast<float>(s) * std::nextafter(near, 0.0F)).bits, sign | bits);
      ASSERT_EQ(TypeParam(static_cast<float>(s) * std::nextafter(near, INFINITY)).bits, sign | (bits + 1));
    }
  }
}

TYPED_TEST(Half, KeepsInfinityAndNan) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(static_cast<double>(TypeParam(infinity)), infinity);
  EXPECT_EQ(static_cast<double>(TypeParam(-infinity)), -infinity);
  EXPECT_EQ(static_cast<double>(TypeParam(1e300)), infinity);
  EXPECT_EQ(static_cast<float>(TypeParam(std::numeric_limits<float>::max())), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(static_cast<double>(TypeParam(std::numeric_limits<double>::quiet_NaN()))));
  for (const std::uint32_t bits : {0x7f800001U, 0xff800001U, 0x7fffffffU, 0xffffffffU}) {
    EXPECT_TRUE(std::isnan(static_cast<float>(TypeParam(std::bit_cast<float>(bits))))) << bits;
  }
}

}  // namespace
}  // namespace foreshard
