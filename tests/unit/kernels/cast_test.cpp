// Casts of every number of 16 bits, and of floats between them.
#include <bit>

#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

template <class T>
struct Casts : Halves<T> {};
TYPED_TEST_SUITE(Casts, HalfTypes);

template <class T>
Array<T> every_half() {
  Array<T> all(65536);
  for (int bits = 0; bits < 65536; ++bits) all[bits].bits = static_cast<std::uint16_t>(bits);
  return all;
}

TYPED_TEST(Casts, EveryHalfToFloatAndBack) {
  using T = TypeParam;
  const Array<T> all = every_half<T>();
  this->in_both([&](Backend& backend) {
    Floats wide(all.size());
    Array<T> back(all.size());
    backend.cast(all.size(), false, all, wide);
    backend.cast(all.size(), false, wide, back);
    for (std::int64_t i = 0; i < all.size(); ++i) {
      const auto right = static_cast<float>(all[i]);
      ASSERT_EQ(std::isnan(wide[i]), std::isnan(right)) << i;
      if (std::isnan(right)) {
        ASSERT_TRUE(std::isnan(static_cast<float>(back[i]))) << i;
        continue;
      }
      ASSERT_EQ(std::bit_cast<int>(wide[i]), std::bit_cast<int>(right)) << i;
      ASSERT_EQ(back[i].bits, all[i].bits) << i;
    }
  });
}

/// Around each half, its neighbours' ties, and one unit beside them: the vector code rounds as base/half.hpp, which has
/// a test of its own.
TYPED_TEST(Casts, FloatsBetweenHalves) {
  using T = TypeParam;
  Floats between(0);
  for (const T& half : every_half<T>().data) {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(half));
    for (const int shift : {13, 16}) {  // the bits that f16 and bf16 cut off
      const std::uint32_t tie = bits + (1U << (shift - 1));
      for (const std::uint32_t near : {tie - 1, tie, tie + 1}) between.data.push_back(std::bit_cast<float>(near));
    }
  }
  this->in_both([&](Backend& backend) {
    Array<T> rounded(between.size());
    backend.cast(between.size(), false, between, rounded);
    for (std::int64_t i = 0; i < between.size(); ++i) {
      const T right(between[i]);
      if (std::isnan(between[i]))
        ASSERT_TRUE(std::isnan(static_cast<float>(rounded[i])));
      else
        ASSERT_EQ(rounded[i].bits, right.bits) << between[i];
    }
  });
}

template <class From, class To>
void expect_cast(Backend& backend, std::int64_t n) {
  const auto from = Array<From>::random(n, 1, 3);
  auto plain = Array<To>::random(n, 2), added = plain;
  const Array<To> before = plain;
  backend.cast(n, false, from, plain);
  backend.cast(n, true, from, added);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto f = static_cast<float>(from[i]);
    EXPECT_EQ(static_cast<float>(plain[i]), static_cast<float>(static_cast<To>(f)));
    EXPECT_EQ(static_cast<float>(added[i]), static_cast<float>(static_cast<To>(static_cast<float>(before[i]) + f)));
  }
}

TYPED_TEST(Casts, BetweenAllTypesPlainAndAdded) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const std::int64_t n : {0, 1, 15, 16, 17, 333}) {
      expect_cast<T, float>(backend, n);
      expect_cast<float, T>(backend, n);
      expect_cast<T, T>(backend, n);
      expect_cast<BFloat16, Float16>(backend, n);
      expect_cast<Float16, BFloat16>(backend, n);
      expect_cast<float, float>(backend, n);
    }
  });
}

TYPED_TEST(Casts, KeepTheSignOfZero) {
  this->in_both([&](Backend& backend) {
    const Floats zero(17, -0.0F);
    Array<TypeParam> half(17);
    backend.cast(17, false, zero, half);
    for (const auto& value : half.data) EXPECT_EQ(value.bits, 0x8000);
  });
}

}  // namespace
}  // namespace foreshard::kernels
