#include <gtest/gtest.h>

#include <bit>
#include <limits>

#include "arrays.hpp"

namespace foreshard::kernels {
namespace cpu {
void exp(std::int64_t count, const float* x, float* y);
void exp_for_bf16(std::int64_t count, const float* x, float* y);
}  // namespace cpu
namespace {

std::vector<float> exps(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  cpu::exp(static_cast<std::int64_t>(x.size()), x.data(), y.data());
  return y;
}

/// Distance in units of the last place of the truth, rounded to float.
double ulps(float seen, double truth) {
  const float rounded = static_cast<float>(truth);
  const double unit = static_cast<double>(std::nextafter(rounded, std::numeric_limits<float>::infinity())) -
                      static_cast<double>(rounded);
  return std::abs(static_cast<double>(seen) - truth) / unit;
}

TEST(Exp, IsWithinTwoUnitsInTheLastPlace) {
  std::vector<float> x;
  for (std::uint32_t bits = 0; bits < std::bit_cast<std::uint32_t>(88.7F); bits += 997) {
    const float value = std::bit_cast<float>(bits);
    x.push_back(value);
    if (value < 86.98F) x.push_back(-value);
  }
  const std::vector<float> y = exps(x);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) worst = std::max(worst, ulps(y[i], std::exp(static_cast<double>(x[i]))));
  EXPECT_LE(worst, 2.0);
}

TEST(Exp, OfExtremes) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> y = exps({0.0F, -0.0F, -88.0F, -1e30F, -infinity, 89.0F, 1e30F, infinity, NAN});
  const std::vector<float> expected = {1, 1, 0, 0, 0, infinity, infinity, infinity};
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y.begin()));
  EXPECT_TRUE(std::isnan(y.back()));
}

TEST(ExpForBf16, IsWithinFourMillionths) {
  std::vector<float> x{0};
  for (float value = 1e-8F; value < 86.97F; value *= 1.0003F) {
    x.push_back(value);
    x.push_back(-value);
  }
  std::vector<float> y(x.size());
  cpu::exp_for_bf16(static_cast<std::int64_t>(x.size()), x.data(), y.data());
  EXPECT_EQ(y[0], 1);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_NEAR(static_cast<double>(y[i]) / std::exp(static_cast<double>(x[i])), 1, 4e-6) << x[i];
}

TEST(ExpForBf16, OfExtremes) {
  const std::vector<float> x{-87.0F, -1e30F, -std::numeric_limits<float>::infinity(), NAN};
  std::vector<float> y(x.size(), -1.0F);
  cpu::exp_for_bf16(static_cast<std::int64_t>(x.size()), x.data(), y.data());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(y[i], 0) << x[i];
  EXPECT_TRUE(std::isnan(y[3]));
}

TEST(Exp, DoesNotDependOnThePlaceInTheArray) {
  std::vector<float> x;
  for (int i = 0; i < 37; ++i) x.push_back(0.37F * static_cast<float>(i) - 7);
  const std::vector<float> whole = exps(x);
  for (std::size_t from = 0; from < x.size(); ++from) {
    const std::vector<float> part = exps({x.begin() + static_cast<std::ptrdiff_t>(from), x.end()});
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(from)));
  }
}

}  // namespace
}  // namespace foreshard::kernels
