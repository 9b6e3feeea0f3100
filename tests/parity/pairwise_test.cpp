// Every pair of settings, in some combination, against one rank that has the whole batch. In the type of the shards the
// truth is double to rounding; in mixed precision, fp32 to the rounding of what is mixed in.
#include <gtest/gtest.h>

#include "combinations.hpp"

namespace foreshard::parity {
namespace {

TEST(Pairwise, EveryPairStandsInSomeCombination) {
  EXPECT_EQ(uncovered_pairs(choices(), combinations()), 0U);
  EXPECT_GT(uncovered_pairs(choices(), {}), 400U);
}

TEST(Pairwise, EveryCombinationEqualsOneRank) {
  for (const Combination& c : combinations()) {
    const Outcome &truth = one_rank(c), seen = run(setup_of(c));
    const bool mixed = is_mixed(c);
    for (std::size_t i = 0; i < truth.losses.size(); ++i)
      EXPECT_NEAR(seen.losses[i], truth.losses[i], (mixed ? 8e-3 : 1e-11) * truth.losses[i]) << text_of(c);
    EXPECT_LE(distance(truth.first_gradients, seen.first_gradients), mixed ? 0.1 : 1e-11) << text_of(c);
    EXPECT_LE(mixed ? 0 : distance(truth.weights, seen.weights), 1e-10) << text_of(c);
  }
}

}  // namespace
}  // namespace foreshard::parity
