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

Pair of_gpus(int gpus, double predicted, double measured, std::int64_t micro_batch = 4) {
  return {.source = "s",
          .predicted = predicted,
          .measured = measured,
          .gpus = gpus,
          .micro_batch = micro_batch,
          .series = "7b"};
}

TEST(Score, OneScaleASourceAndGpuTakesTheMedianOff) {
  std::vector<Pair> pairs = {off_by(20), off_by(20), off_by(32), off_by(50, "other")};
  pairs[2].gpu = "b200";
  const auto scaled = with_one_scale(pairs);
  EXPECT_NEAR(errors_of(scaled).mape_pct, 0, 1e-9);
  pairs[2].gpu = "";
  EXPECT_NEAR(with_one_scale(pairs)[2].error(), 0.1, 1e-12);
}

/// Predicted: a step with 64 GPUs takes 1.25 times as long as with 8; measured: twice.
TEST(Score, ScalingIsTimeWithMoreGpusOverTimeWithEight) {
  const auto ratios = scaling_ratios({of_gpus(8, 100, 90), of_gpus(64, 80, 45), of_gpus(4, 1, 1)});
  ASSERT_EQ(ratios.size(), 1U);
  EXPECT_DOUBLE_EQ(ratios[0].predicted, 1.25);
  EXPECT_DOUBLE_EQ(ratios[0].measured, 2);
}

TEST(Score, ScalingComparesEqualMicroBatchesWhereItCan) {
  const auto ratios = scaling_ratios({of_gpus(8, 100, 100, 1), of_gpus(8, 200, 200, 4), of_gpus(16, 100, 100, 4)});
  ASSERT_EQ(ratios.size(), 1U);
  EXPECT_DOUBLE_EQ(ratios[0].measured, 2);
  std::vector<Pair> strangers = {of_gpus(8, 1, 1), of_gpus(16, 1, 1)};
  strangers[1].series = "13b";
  EXPECT_TRUE(scaling_ratios(strangers).empty());
}

TEST(Score, CoverageIsThePartWithinTheErrorBars) {
  std::vector<Pair> pairs = {off_by(4), off_by(-6)};
  for (Pair& pair : pairs) pair.error_bar_pct = 5;
  EXPECT_DOUBLE_EQ(coverage(pairs), 0.5);
  EXPECT_EQ(above({of_gpus(256, 1, 1), of_gpus(512, 1, 1)}, 256).size(), 1U);
}

}  // namespace
}  // namespace foreshard::sim::validation
