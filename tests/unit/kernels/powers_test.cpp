// Sums of powers: exact, the same however an array is cut and whoever computes them.
#include "kernels/powers.hpp"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "arrays.hpp"

namespace foreshard::kernels {
namespace {

using Words = std::array<std::int64_t, ExactSum::words>;
constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
constexpr float largest_float = std::numeric_limits<float>::max();

Words powers(Backend& backend, int power, const Array<float>& x, std::int64_t from, std::int64_t to, Words words = {}) {
  backend.add_powers(power, to - from, Const{x.data.data() + from, DType::f32}, words);
  return words;
}

Array<float> of(std::vector<float> values) {
  Array<float> x;
  x.data = std::move(values);
  return x;
}

Words merged(Words a, const Words& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  carry_exact(a);
  return a;
}

class Powers : public testing::TestWithParam<int> {
 protected:
  double norm(Backend& backend, const Array<float>& x) {
    return norm_of(static_cast<float>(GetParam()), powers(backend, GetParam(), x, 0, x.size()));
  }
  std::unique_ptr<Backend> cpu = make_cpu(), reference = make_reference();
};

TEST_P(Powers, DoNotDependOnCutsAtMultiplesOfEight) {
  Array<float> x = Array<float>::random(1003, 1);
  for (std::int64_t i = 0; i < x.size(); ++i) x[i] = std::ldexp(x[i], static_cast<int>(i % 120) - 60);
  for (Backend* backend : {cpu.get(), reference.get()}) {
    const Words whole = powers(*backend, GetParam(), x, 0, 1003);
    EXPECT_EQ(whole, powers(*reference, GetParam(), x, 0, 1003));
    for (const std::int64_t cut : {0, 8, 16, 72, 504, 1000}) {
      const Words head = powers(*backend, GetParam(), x, 0, cut);
      EXPECT_EQ(powers(*backend, GetParam(), x, cut, 1003, head), whole);
      EXPECT_EQ(merged(head, powers(*backend, GetParam(), x, cut, 1003)), whole);
    }
  }
}

TEST_P(Powers, RootsOfOneThousandNumbers) {
  const Array<float> x = Array<float>::random(1000, 3);
  long double sum = 0;
  for (const float v : x.data) sum += std::pow(std::abs(static_cast<long double>(v)), GetParam());
  const auto truth = static_cast<double>(std::pow(sum, 1.0L / GetParam()));
  EXPECT_NEAR(norm(*cpu, x), truth, 1e-15 * truth);
}

TEST_P(Powers, OfOneNumberAreItsMagnitude) {
  for (const float value : {1.0F, -3.5F, 1e-20F, -1e30F, largest_float})
    EXPECT_NEAR(norm(*cpu, of({value, 0, 0})), std::abs(value), 1e-15 * std::abs(value)) << value;
}

TEST_P(Powers, OfWhatIsNotFiniteAreNotFinite) {
  for (const float value : {infinity, -infinity, nan})
    for (Backend* backend : {cpu.get(), reference.get()})
      for (const std::size_t at : {std::size_t{0}, std::size_t{9}, std::size_t{40}}) {
        Array<float> x(41, 1.0F);
        x.data[at] = value;
        EXPECT_FALSE(std::isfinite(norm(*backend, x))) << value << " at " << at;
      }
}

TEST_P(Powers, OfManyLargestNumbersAreStillFinite) {
  const double count = 64, each = static_cast<double>(largest_float);
  const double truth = each * std::pow(count, 1.0 / GetParam());
  EXPECT_NEAR(norm(*cpu, Array<float>(64, largest_float)), truth, 1e-14 * truth);
}

INSTANTIATE_TEST_SUITE_P(All, Powers, testing::Values(1, 2, 3));

TEST(Squares, OfTheSmallestNumber) {
  EXPECT_EQ(value_of(powers(*make_cpu(), 2, of({std::numeric_limits<float>::denorm_min(), 0, 0}), 0, 3)), 0x1p-298);
}

std::int64_t largest(Backend& backend, const Array<float>& x, std::int64_t before = 0) {
  backend.max_magnitude(x.size(), x, before);
  return before;
}

TEST(MaxMagnitude, IsTheLargestOfAllShards) {
  const auto cpu = make_cpu(), reference = make_reference();
  const Array<float> x = Array<float>::random(1003, 1), y = of({-7.5F, 2});
  double truth = 0;
  for (const float v : x.data) truth = std::max(truth, std::abs(static_cast<double>(v)));
  for (Backend* backend : {cpu.get(), reference.get()}) {
    const std::array<std::int64_t, 2> words{largest(*backend, x), largest(*backend, y)};
    EXPECT_EQ(norm_of(infinity, std::span(words).first(1)), truth);
    EXPECT_EQ(norm_of(infinity, words), 7.5);
    EXPECT_EQ(largest(*backend, x, words[1]), words[1]) << "what was there before counts";
  }
}

TEST(MaxMagnitude, ShowsWhatIsNotFinite) {
  const auto cpu = make_cpu(), reference = make_reference();
  for (Backend* backend : {cpu.get(), reference.get()})
    for (const float value : {infinity, -infinity, nan, -nan}) {
      Array<float> x(41, largest_float);
      x[40] = value;
      const std::array<std::int64_t, 2> words{largest(*backend, of({1})), largest(*backend, x)};
      EXPECT_FALSE(std::isfinite(norm_of(infinity, words))) << value;
    }
}

TEST(MaxMagnitude, OfAnEmptyShardIsZero) {
  const std::array<std::int64_t, 1> words{largest(*make_cpu(), Array<float>(0))};
  EXPECT_EQ(norm_of(infinity, words), 0);
}

}  // namespace
}  // namespace foreshard::kernels
