#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <limits>
#include <random>

#include "arrays.hpp"
#include "kernels/exact_sum.hpp"

namespace foreshard::kernels {
namespace {

using Words = std::array<std::int64_t, ExactSum::words>;
constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

Words sum_of(const std::vector<double>& values) {
  Words words = {};
  for (const double value : values) add_exact(words, value);
  return words;
}

Words merged(Words a, const Words& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

std::vector<double> mixture(std::size_t count, int lowest, int highest) {
  std::mt19937_64 bits(1);
  std::uniform_int_distribution<int> exponent(lowest, highest);
  std::uniform_real_distribution<double> fraction(-1, 1);
  std::vector<double> values(count);
  for (double& value : values) value = std::ldexp(fraction(bits), exponent(bits));
  return values;
}

TEST(ExactSum, OneNumberComesBack) {
  for (const double value :
       {1.0, -1.0, 0.1, -3.7e20, 0x1p-300, -0x1.fffffffffffffp300, 0x1.fffffffffffffp-1, 0x1p-53}) {
    EXPECT_EQ(value_of(sum_of({value})), value);
  }
  EXPECT_EQ(value_of(sum_of({})), 0);
  EXPECT_EQ(value_of(sum_of({0.0, -0.0, 1e-310, 0x1p-301})), 0);
}

TEST(ExactSum, NothingIsLost) {
  EXPECT_EQ(value_of(sum_of({1e80, 1.0, -1e80})), 1.0);
  EXPECT_EQ(value_of(sum_of({0x1p300, 0x1p-300, -0x1p300})), 0x1p-300);
  EXPECT_EQ(value_of(sum_of({-0x1p300, 0x1p-300, 0x1p300, -0x1p-299})), -0x1p-300);
}

TEST(ExactSum, OrderDoesNotMatter) {
  std::vector<double> values = mixture(1000, -280, 280);
  const Words words = sum_of(values);
  std::shuffle(values.begin(), values.end(), std::mt19937_64(2));
  EXPECT_EQ(sum_of(values), words);
}

TEST(ExactSum, MergedWordsAreTheSum) {
  const std::vector<double> values = mixture(999, -200, 200);
  Words parts = {};
  for (std::size_t from = 0; from < values.size(); from += 111) {
    Words part = sum_of({values.begin() + from, values.begin() + from + 111});
    carry_exact(part);
    parts = merged(parts, part);
  }
  EXPECT_EQ(value_of(parts), value_of(sum_of(values)));
}

TEST(ExactSum, WithinOneUnitOfQuadruplePrecision) {
  const std::vector<double> values = mixture(2000, -20, 20);
  __extension__ __float128 truth = 0;
  for (const double value : values) truth += value;
  const double expected = static_cast<double>(truth), seen = value_of(sum_of(values));
  EXPECT_LE(std::abs(seen - expected), std::abs(std::nextafter(expected, infinity) - expected));
}

TEST(ExactSum, OfManyEqualNumbers) {
  Words words = {};
  for (int i = 0; i < (1 << 20); ++i) add_exact(words, 0x1.fffffffffffffp-1);
  EXPECT_EQ(value_of(words), 0x1.fffffffffffffp19);
}

TEST(ExactSum, MarksWhatIsNotFinite) {
  for (const double value : {infinity, -infinity, nan, 0x1p301}) {
    const Words words = sum_of({1.0, value, 2.0});
    EXPECT_TRUE(std::isnan(value_of(words)));
    EXPECT_TRUE(std::isnan(value_of(merged(words, sum_of({1.0})))));
  }
}

}  // namespace
}  // namespace foreshard::kernels
