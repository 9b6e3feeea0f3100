// Rounding to bf16: which numbers come out, and how often; then updates of parameters that are kept in it.
#include "kernels/rounding.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "arrays.hpp"
#include "update_of_kind.hpp"

namespace foreshard::kernels {
namespace {

using Floats = Array<float>;
using Halves = Array<BFloat16>;

constexpr float largest_bf16 = 0x1.FEp127F, infinity = std::numeric_limits<float>::infinity();

float with_bits(std::uint32_t bits) { return std::bit_cast<float>(bits); }
std::uint32_t bits_of(float x) { return std::bit_cast<std::uint32_t>(x); }

/// Numbers between two neighbours in bf16, at many places between them, of all magnitudes and both signs.
std::vector<float> between_neighbours() {
  std::vector<float> all;
  for (const std::uint32_t upper : {0x0000U, 0x0001U, 0x007fU, 0x0080U, 0x3f80U, 0x3fffU, 0x4049U, 0x7f7eU})
    for (const std::uint32_t lower : {0x0001U, 0x00ffU, 0x4000U, 0x7fffU, 0x8000U, 0x8001U, 0xfffeU, 0xffffU})
      for (const std::uint32_t sign : {0U, 0x80000000U}) all.push_back(with_bits(sign | upper << 16 | lower));
  return all;
}

/// Over all random numbers, the sum of what comes out is 2¹⁶ times the number: exact in double, since all are of one
/// exponent or its end.
TEST(StochasticRounding, TakesOneOfTheNeighboursAndIsExactOnAverage) {
  for (const float x : between_neighbours()) {
    const float near_zero = with_bits(bits_of(x) & 0xffff0000U),
                beyond = with_bits((bits_of(x) & 0xffff0000U) + 0x10000U);
    std::int64_t far = 0;
    for (std::uint32_t random = 0; random < 0x10000U; ++random) {
      const float seen = rounded_stochastically(x, random);
      ASSERT_TRUE(bits_of(seen) == bits_of(near_zero) || bits_of(seen) == bits_of(beyond)) << x << ' ' << random;
      far += bits_of(seen) == bits_of(beyond);
    }
    const double down = static_cast<double>(near_zero), up = static_cast<double>(beyond);
    EXPECT_EQ(down + (up - down) * 0x1p-16 * static_cast<double>(far), static_cast<double>(x)) << x;
  }
}

TEST(StochasticRounding, KeepsWhatABf16CanHold) {
  for (std::uint32_t upper = 0; upper < 0x10000U; ++upper) {
    const float x = with_bits(upper << 16);
    for (const std::uint32_t random : {0U, 1U, 0x8000U, 0xffffU, 0xffffffffU}) {
      const float seen = rounded_stochastically(x, random);
      ASSERT_TRUE(std::isnan(x) ? std::isnan(seen) : bits_of(seen) == bits_of(x)) << upper << ' ' << random;
    }
  }
}

TEST(StochasticRounding, MakesNoNumberOfWhatIsNone) {
  for (const std::uint32_t nan : {0x7f800001U, 0x7fffffffU, 0xff800001U, 0xffffffffU})
    for (const std::uint32_t random : {0U, 0xffffU})
      EXPECT_TRUE(std::isnan(static_cast<float>(BFloat16(rounded_stochastically(with_bits(nan), random)))));
}

TEST(StochasticRounding, OfWhatIsBeyondTheLargestIsThatOrInfinite) {
  const float beyond = with_bits(bits_of(largest_bf16) + 0x4000U);
  EXPECT_EQ(rounded_stochastically(beyond, 0xbfff), largest_bf16);
  EXPECT_EQ(rounded_stochastically(beyond, 0xc000), infinity);
  EXPECT_EQ(rounded_stochastically(-beyond, 0xc000), -infinity);
}

/// As memory holds them: the words of each call as sixteen bytes.
TEST(StochasticRounding, TakesHalvesOfPhiloxInOrder) {
  const Rounding rounding{.key = 42, .stream = 7, .first = 1000003};
  for (std::uint64_t i = 0; i < 40; ++i) {
    const std::uint64_t e = 1000003 + i;
    const auto words = philox(42, 7, e >> 3);
    std::uint16_t halves[8];
    std::memcpy(halves, words.data(), sizeof halves);
    EXPECT_EQ(rounding.random(i), halves[e & 7]) << i;
  }
}

/// Rounded by so many keys, the mean of a number's roundings is within five standard deviations of the number, and so
/// is the number of times that both of two elements, parameters or steps go up.
TEST(StochasticRounding, BySeedsIsRightOnAverageAndIndependent) {
  constexpr int seeds = 1 << 14;
  const double part = 0.3;
  const auto x = static_cast<float>(1 + part * 0x1p-7);
  const auto up = [&](std::uint64_t key, std::uint64_t stream, std::uint64_t e) {
    return rounded_stochastically(x, Rounding{.key = key, .stream = stream}.random(e)) > 1;
  };
  int ups = 0, with_next_element = 0, with_next_stream = 0, with_next_key = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const bool here = up(seed, 3, 17);
    ups += here;
    with_next_element += here && up(seed, 3, 18);
    with_next_stream += here && up(seed, 4, 17);
    with_next_key += here && up(seed + (1U << 20), 3, 17);
  }
  const auto expect_share = [&](int seen, double share) {
    EXPECT_NEAR(seen, share * seeds, 5 * std::sqrt(seeds * share * (1 - share)));
  };
  const double exact = (static_cast<double>(x) - 1) * 0x1p7;
  expect_share(ups, exact);
  for (const int both : {with_next_element, with_next_stream, with_next_key}) expect_share(both, exact * exact);
}

std::vector<std::uint16_t> bits_of(const Halves& array) {
  std::vector<std::uint16_t> bits;
  for (const BFloat16& x : array.data) bits.push_back(x.bits);
  return bits;
}

/// What parameters become that are updated in f32 to `updated`, by rounding written another way: up where the cut-off
/// part exceeds what the random number leaves.
std::vector<std::uint16_t> rounded(const Floats& updated, const Rounding& o) {
  std::vector<std::uint16_t> bits;
  for (std::int64_t i = 0; i < updated.size(); ++i) {
    const std::uint32_t whole = bits_of(updated[i]), upper = whole >> 16, cut = whole % 65536;
    const std::uint64_t e = o.first + static_cast<std::uint64_t>(i);
    const std::uint32_t word = philox(o.key, o.stream, e / 8)[e % 8 / 2], random = e % 2 ? word / 65536 : word % 65536;
    const std::uint32_t nearest = upper + (cut > 32768 || (cut == 32768 && upper % 2 == 1));
    bits.push_back(static_cast<std::uint16_t>(o.stochastic ? upper + (random >= 65536 - cut) : nearest));
  }
  return bits;
}

class Bf16Update : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Backend> cpu = make_cpu(), reference = make_reference();
};

/// Three steps, each against one in f32 from the same parameters. The reference's f32 is f64, rounded once: the same.
TEST_P(Bf16Update, RoundsTheUpdateInF32) {
  for (Backend* backend : {cpu.get(), reference.get()}) {
    for (const bool stochastic : {false, true}) {
      for (const std::int64_t n : {1, 7, 8, 130, 1000}) {
        for (const std::uint64_t first : {0ULL, 3ULL, 8ULL, 123456789012ULL, (1ULL << 35) - 64}) {
          Update o = options(GetParam(), n);
          o.rounding = {.stochastic = stochastic, .stream = 5, .first = first};
          Halves p = Halves::random(n, 1);
          Floats moments[2] = {Floats(n), Floats(n)}, truths[2] = {Floats(n), Floats(n)};
          for (o.step = 1; o.step <= 3; ++o.step) {
            o.rounding.key = static_cast<std::uint64_t>(o.step) << 40;
            Floats updated(p);
            const Floats g = Floats::random(n, 10 + static_cast<std::uint64_t>(o.step));
            step(*backend, GetParam(), o, g, updated, truths[0], truths[1]);
            step(*backend, GetParam(), o, g, p, moments[0], moments[1]);
            ASSERT_EQ(bits_of(p), rounded(updated, o.rounding)) << n << ' ' << first << ' ' << stochastic;
            ASSERT_EQ(moments[0].data, truths[0].data);
            ASSERT_EQ(moments[1].data, truths[1].data);
          }
        }
      }
    }
  }
}

/// Cut at odd places, some of which are within what one call of Philox rounds.
TEST_P(Bf16Update, OfAShardIsThatPartOfTheWhole) {
  constexpr std::int64_t n = 1000;
  Update o = options(GetParam(), n);
  o.rounding = {.stochastic = true, .key = 9, .stream = 2, .first = 40};
  const Array<BFloat16> g = Halves::random(n, 1);
  Halves p = Halves::random(n, 2), part_p = p;
  Floats first = Floats::random(n, 3), second(n, 0.5F), part_first = first, part_second = second;
  step(*cpu, GetParam(), o, g, p, first, second);
  for (std::int64_t from = 0, count = 0; from < n; from += count) {
    count = std::min<std::int64_t>(n - from, 1 + from % 149);
    o.count = count;
    o.rounding.first = static_cast<std::uint64_t>(40 + from);
    const auto at = [&](Floats& a) { return Mut{a.data.data() + from, DType::f32}; };
    step(*cpu, GetParam(), o, Const{g.data.data() + from, DType::bf16}, Mut{part_p.data.data() + from, DType::bf16},
         at(part_first), at(part_second));
  }
  EXPECT_EQ(bits_of(part_p), bits_of(p));
  EXPECT_EQ(part_first.data, first.data);
}

/// Of the optimizers that do not divide.
class ExactBf16Update : public Bf16Update {};

/// Of numbers with so few bits that f32 and f64 are exact, so that both round the same.
TEST_P(ExactBf16Update, IsTheSameInBothBackends) {
  constexpr std::int64_t n = 3000;
  Update o = options(GetParam(), n);
  o.learning_rate = 0x1p-6, o.weight_decay = 0, o.beta1 = 0.5, o.beta2 = 0.75;
  if (o.momentum > 0) o.momentum = 0.5;
  o.rounding = {.stochastic = true, .key = 1, .stream = 2, .first = 5};
  Halves p(n), same(n);
  Floats g(n), moments[4] = {Floats(n), Floats(n), Floats(n), Floats(n)};
  for (std::int64_t i = 0; i < n; ++i) {
    g[i] = static_cast<float>(i % 31 - 15) / 16;
    p[i] = same[i] = BFloat16(static_cast<float>(1 + i % 100) / 64);
  }
  step(*cpu, GetParam(), o, g, p, moments[0], moments[1]);
  step(*reference, GetParam(), o, g, same, moments[2], moments[3]);
  EXPECT_EQ(bits_of(p), bits_of(same));
}

INSTANTIATE_TEST_SUITE_P(All, Bf16Update, testing::ValuesIn(kinds),
                         [](const auto& test) { return name_of(test.param); });

INSTANTIATE_TEST_SUITE_P(All, ExactBf16Update, testing::Values(Kind::sgd, Kind::momentum, Kind::nesterov, Kind::lion),
                         [](const auto& test) { return name_of(test.param); });

/// Sixty-four times 2⁻¹², where neighbours are 2⁻⁸ apart: to nearest, each of them is lost. The variance of one step is
/// at most that of one throw with probability 1/16.
TEST(Bf16Update, SmallStepsAreLostToNearestButNotOnAverage) {
  constexpr std::int64_t n = 4096, steps = 64;
  const auto cpu = make_cpu();
  Update o{.count = n, .learning_rate = 0x1p-12};
  const Floats g(n, 1.0F);
  Halves nearest(n, BFloat16(1.0F)), stochastic(n, BFloat16(1.0F));
  Floats in_full(n, 1.0F);
  for (std::uint64_t step = 0; step < steps; ++step) {
    o.rounding = {.stochastic = false};
    cpu->sgd(o, g, nearest, {});
    cpu->sgd(o, g, in_full, {});
    o.rounding = {.stochastic = true, .key = step};
    cpu->sgd(o, g, stochastic, {});
  }
  double sum = 0;
  for (const BFloat16 p : stochastic.data) sum += static_cast<double>(p);
  EXPECT_EQ(bits_of(nearest), bits_of(Halves(n, BFloat16(1.0F))));
  EXPECT_EQ(in_full[0], 1 - steps * 0x1p-12F);
  const double deviation = std::sqrt(steps * 0x1p-16 * (1.0 / 16) * (15.0 / 16) / n);
  EXPECT_NEAR(sum / n, static_cast<double>(in_full[0]), 5 * deviation);
}

}  // namespace
}  // namespace foreshard::kernels
