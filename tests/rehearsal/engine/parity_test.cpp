// The CUDA engine on rehearsed devices, in every pair of settings, against one rank on processor cores that has the
// whole batch in double.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "combinations.hpp"
#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

void expect_like_one_rank(const Combination& c) {
  const Outcome &truth = one_rank(c), seen = run_rehearsed(setup_of(c));
  const bool mixed = is_mixed(c);
  for (std::size_t i = 0; i < truth.losses.size(); ++i)
    EXPECT_NEAR(seen.losses[i], truth.losses[i], (mixed ? 8e-3 : 1e-5) * truth.losses[i]) << text_of(c);
  EXPECT_LE(distance(truth.first_gradients, seen.first_gradients), mixed ? 0.1 : 1e-4) << text_of(c);
  EXPECT_THAT(rehearsal::reports(), testing::IsEmpty()) << text_of(c);
}

class RehearsedCombination : public testing::TestWithParam<std::size_t> {};

TEST_P(RehearsedCombination, EqualsOneRank) { expect_like_one_rank(combinations()[GetParam()]); }

INSTANTIATE_TEST_SUITE_P(Some, RehearsedCombination, testing::Range(std::size_t{0}, combinations().size(), 8));
INSTANTIATE_TEST_SUITE_P(Each, RehearsedCombination, testing::Range(std::size_t{0}, combinations().size()));

}  // namespace
}  // namespace foreshard::parity
