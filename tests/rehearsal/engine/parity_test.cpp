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

/// Every eighth combination, or those between.
std::vector<std::size_t> combinations_of(bool eighth) {
  std::vector<std::size_t> chosen;
  for (std::size_t i = 0; i < combinations().size(); ++i)
    if ((i % 8 == 0) == eighth) chosen.push_back(i);
  return chosen;
}

INSTANTIATE_TEST_SUITE_P(Some, RehearsedCombination, testing::ValuesIn(combinations_of(true)));
INSTANTIATE_TEST_SUITE_P(Rest, RehearsedCombination, testing::ValuesIn(combinations_of(false)));

}  // namespace
}  // namespace foreshard::parity
