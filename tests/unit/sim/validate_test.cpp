// How far predictions of published runs are off. What is asserted is what was reached, so that no change loses it
// unseen.
#include "sim/validation/validate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.hpp"
#include "sim/validation/error_bars.hpp"
#include "sim/validation/left_out.hpp"

namespace foreshard::sim::validation {
namespace {

const Validation& all() {
  static const Validation validation = [] {
    const closed_form::Profile profile;
    Validation result;
    for (const auto& entry : std::filesystem::directory_iterator(FORESHARD_MEASUREMENTS_DIR)) {
      if (entry.path().extension() != ".csv") continue;
      CsvTable table = read_csv(entry.path().string());
      validate(table, profile, result);
    }
    return result;
  }();
  return validation;
}

TEST(Validation, EveryRowIsUsedOrSaysWhyNot) {
  std::size_t skipped = 0;
  for (const auto& [reason, rows] : all().skipped) skipped += rows;
  EXPECT_EQ(all().throughput.size() + skipped, all().rows);
  EXPECT_GE(all().throughput.size(), 740U);
}

TEST(Validation, ThroughputOfPublishedRunsIsPredicted) {
  const Errors errors = errors_of(all().throughput);
  EXPECT_LE(errors.mape_pct, 2.5);
  EXPECT_LE(std::abs(errors.bias_pct), 1.0);
  EXPECT_LE(errors.p90_pct, 5.0);
}

TEST(Validation, PeakMemoryOfPublishedRunsIsPredicted) {
  EXPECT_GE(all().memory.size(), 50U);
  const Errors full = errors_of(with_adapters(all().memory, false));
  EXPECT_LE(full.mape_pct, 4.0);
  EXPECT_LE(full.p90_pct, 8.0);
  EXPECT_LE(errors_of(with_adapters(all().memory, true)).mape_pct, 5.0);
  EXPECT_EQ(all().verdicts.false_fits, 0U);
  EXPECT_LE(all().verdicts.wasted_rate(), 0.04);
}

TEST(Validation, ScalingAndLargeRunsArePredicted) {
  const Errors ratios = errors_of(scaling_ratios(all().throughput));
  EXPECT_GE(ratios.rows, 100U);
  EXPECT_LE(ratios.mape_pct, 2.0);
  EXPECT_LE(ratios.p90_pct, 5.0);
  EXPECT_LE(errors_of(with_one_scale(all().throughput)).mape_pct, 3.0);
  EXPECT_LE(errors_of(above(all().throughput, 256)).mape_pct, 9.0);
}

TEST(Validation, NineOfTenRowsAreWithinTheirErrorBars) { EXPECT_GE(coverage(all().throughput), 0.9); }

TEST(ErrorBars, WidenWithWhatWasNotMeasured) {
  const double measured = error_bar_pct("a100-sxm-80gb", "eager"), other = error_bar_pct("a100-sxm-80gb", "new");
  EXPECT_LT(measured, other);
  EXPECT_LT(other, error_bar_pct("mi300x", "eager"));
}

TEST(ErrorBars, AreOfTheNearestClassOfRuns) {
  const ErrorBar nearest = torch_error_bar({"a100-sxm-80gb", "eager", false, 8});
  EXPECT_GE(nearest.rows, 50U);
  EXPECT_THAT(nearest.basis, testing::HasSubstr("a100-sxm-80gb eager plain up to 8 GPUs"));
  EXPECT_THAT(torch_error_bar({"h100-sxm", "eager", true, 8}).basis, testing::EndsWith(": h100-sxm eager"));
  const ErrorBar none = torch_error_bar({"mi300x", "eager", true, 8});
  EXPECT_EQ(none.rows, 0U);
  EXPECT_THAT(none.basis, testing::HasSubstr("no published run on mi300x"));
  EXPECT_GT(none.pct, nearest.pct);
  EXPECT_LT(unseen_software_error_bar({"h100-sxm", "foreshard-cuda", true, 8}).pct, none.pct);
}

TEST(ErrorBars, FindTheDevicesOfTheCatalogue) {
  EXPECT_EQ(catalogue_key_of("H100-SXM5-80GB"), "h100-sxm");
  EXPECT_EQ(catalogue_key_of("my own"), "my own");
}

TEST(Validation, LiveBytesOfPyTorchArePredictedToTheByte) {
  CsvTable table = read_csv(FORESHARD_GOLDEN_DIR "/fsdp_memory.csv");
  Validation validation;
  validate(table, closed_form::Profile(), validation);
  ASSERT_EQ(validation.live.peaks.size(), 141U);
  EXPECT_EQ(validation.live.other_phases + validation.live.other_after_step, 0U);
  const nlohmann::json json = to_json(validation);
  EXPECT_EQ(json.at("live_mape_pct"), 0);
  EXPECT_EQ(json.at("live_p90_pct"), 0);
  EXPECT_EQ(table.header.back(), "predicted_after_step_bytes");
}

TEST(Validation, ALiveRowOfAnUnknownModelIsNamed) {
  CsvTable table = read_csv(FORESHARD_GOLDEN_DIR "/fsdp_memory.csv");
  table.rows[2][table.column("model")] = "gpt5";
  Validation validation;
  EXPECT_THROW(validate(table, closed_form::Profile(), validation), InputError);
}

TEST(Validation, SourcesThatNoFitSawArePredicted) {
  const auto& sources = left_out_sources();
  EXPECT_GE(sources.size(), 10U);
  EXPECT_LE(left_out_in_all(sources).mape_pct, 8.0);
  EXPECT_LE(left_out_in_all(sources).scaled_mape_pct, 5.0);
  for (const auto& [source, errors] : errors_by_source(all().throughput))
    EXPECT_TRUE(errors.rows < 3 || sources.contains(source)) << source;
}

TEST(LeftOutSources, AreWeighedByTheirRows) {
  const LeftOut all = left_out_in_all({{"a", {.rows = 1, .mape_pct = 10, .bias_pct = -10, .scaled_mape_pct = 4}},
                                       {"b", {.rows = 3, .mape_pct = 2, .bias_pct = 2, .scaled_mape_pct = 0}}});
  EXPECT_EQ(all.rows, 4U);
  EXPECT_DOUBLE_EQ(all.mape_pct, 4);
  EXPECT_DOUBLE_EQ(all.bias_pct, -1);
  EXPECT_DOUBLE_EQ(all.scaled_mape_pct, 1);
}

TEST(Validation, JsonSaysTheSame) {
  const nlohmann::json json = to_json(all());
  EXPECT_DOUBLE_EQ(json.at("throughput_mape_pct"), errors_of(all().throughput).mape_pct);
  EXPECT_EQ(json.at("rows_used"), all().throughput.size());
  EXPECT_DOUBLE_EQ(json.at("memory_mape_pct"), errors_of(all().memory).mape_pct);
  EXPECT_EQ(json.at("false_fit"), 0);
  EXPECT_GE(json.at("per_source").size(), 10U);
}

}  // namespace
}  // namespace foreshard::sim::validation
