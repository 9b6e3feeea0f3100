#include "sim/validation/score.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foreshard::sim::validation {
namespace {

Pair off_by(double percent, std::string source = "s") {
  return {.source = std::move(source), .predicted = 100 + percent, .measured = 100};
}

TEST(Score, OfNothingIsNothing) {
  EXPECT_EQ(errors_of({}).rows, 0U);
  EXPECT_EQ(errors_of({}).mape_pct, 0);
}

TEST(Score, IsRelativeToWhatWasMeasured) {
  const Errors errors = errors_of({{.predicted = 50, .measured = 100}, {.predicted = 300, .measured = 200}});
  EXPECT_DOUBLE_EQ(errors.mape_pct, 50);
  EXPECT_DOUBLE_EQ(errors.bias_pct, 0);
}

TEST(Score, NineOfTenRowsAreNotFurtherOffThanThe90thPercentile) {
  std::vector<Pair> pairs;
  for (int percent = 1; percent <= 10; ++percent) pairs.push_back(off_by(percent % 2 ? percent : -percent));
  EXPECT_NEAR(errors_of(pairs).p90_pct, 9, 1e-9);
  EXPECT_NEAR(errors_of({off_by(7)}).p90_pct, 7, 1e-9);
}

TEST(Score, IsGivenForEachSource) {
  const auto errors = errors_by_source({off_by(1, "a"), off_by(3, "a"), off_by(-8, "b")});
  EXPECT_NEAR(errors.at("a").mape_pct, 2, 1e-9);
  EXPECT_NEAR(errors.at("b").bias_pct, -8, 1e-9);
}

TEST(Score, NamesTheWorstRowsFirst) {
  const auto rows = worst({off_by(1), off_by(-9), off_by(4)}, 2);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_NEAR(rows[0].error(), -0.09, 1e-12);
  EXPECT_NEAR(rows[1].error(), 0.04, 1e-12);
}

TEST(Score, OfFitVerdictsCountsEachKindAmongItsOwn) {
  FitVerdicts verdicts;
  for (const auto& [predicted, measured] : {std::pair{true, true}, {false, true}, {true, false}, {false, false}})
    verdicts.add(predicted, measured);
  verdicts.add(true, true);
  EXPECT_DOUBLE_EQ(verdicts.false_fit_rate(), 0.5);
  EXPECT_DOUBLE_EQ(verdicts.wasted_rate(), 1.0 / 3);
}

}  // namespace
}  // namespace foreshard::sim::validation
