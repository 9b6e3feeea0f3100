#include "base/random.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/hash.hpp"

namespace foreshard {
namespace {

using ::testing::ElementsAre;

// Known answers of Random123 (https://github.com/DEShawResearch/random123, tests/kat_vectors, philox4x32 10).
TEST(Philox, MatchesThePublishedVectors) {
  EXPECT_THAT(philox(0, 0, 0), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox(~0ULL, ~0ULL, ~0ULL), ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox(0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

TEST(Uniform, NeverReachesZeroOrOne) {
  EXPECT_GT(uniform(0), 0);
  EXPECT_LT(uniform(~0u), 1);
}

TEST(Normal, HasTheMomentsOfANormalNumber) {
  constexpr int count = 200000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < count; ++i) {
    const double x = normal(7, static_cast<std::uint64_t>(i));
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / count, 0, 5 / std::sqrt(count));
  EXPECT_NEAR(squares / count, 1, 5 * std::sqrt(2.0 / count));
  EXPECT_NEAR(fourths / count, 3, 5 * std::sqrt(96.0 / count));
}

// http://www.isthe.com/chongo/src/fnv/test_fnv.c
TEST(Hash, IsFnv1a) {
  EXPECT_EQ(Hash().value(), 0xcbf29ce484222325);
  EXPECT_EQ(Hash().add('a').value(), 0xaf63dc4c8601ec8c);
}

TEST(Hash, SeparatesTextsFromTheirConcatenation) {
  EXPECT_NE(Hash().add(std::string_view("ab")).add(std::string_view("c")).value(),
            Hash().add(std::string_view("a")).add(std::string_view("bc")).value());
}

}  // namespace
}  // namespace foreshard
