#include "train/metrics.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "unit/base/temporary_folder.hpp"

namespace foreshard::train {
namespace {

using ::testing::HasSubstr;

StepMetrics example() {
  StepMetrics metrics;
  metrics.step = 120;
  metrics.loss = 3.21451;
  metrics.grad_norm = 0.8121;
  metrics.lr = 3e-4;
  metrics.step_s = 0.1824;
  metrics.tps_device = 5614.2;
  metrics.tps_global = 44912;
  metrics.tflops_device = 12.31;
  metrics.mfu_pct = 8.1;
  metrics.mem_reserved_peak_bytes = 3350074491.0;
  metrics.comm_exposed_s = 0.112 * 0.1824;
  return metrics;
}

TEST(ConsoleLine, IsTheAgreedLine) {
  EXPECT_EQ(console_line(example(), 2000, 8.6e9, 343),
            "step   120/2000 | loss 3.2145 | grad_norm 0.812 | lr 3.0e-04 | 182.4 ms | tps 5,614 (44,912 all) | tflops "
            "12.31 | "
            "mfu 8.1% | memory 3.12 GiB (39%) | comm 11.2% exposed | eta 5m43s");
}

TEST(ConsoleLine, SaysWhatIsNotKnown) {
  StepMetrics metrics = example();
  metrics.mfu_pct = metrics.comm_exposed_s = metrics.mem_reserved_peak_bytes = unknown;
  metrics.warmup = true;
  const std::string line = console_line(metrics, 2000, 0, unknown);
  EXPECT_THAT(line, HasSubstr("| mfu n/a | memory n/a | comm n/a | warm-up"));
}

TEST(ConsoleLine, AnInfiniteLossIsShownAsItIs) {
  StepMetrics metrics = example();
  metrics.loss = INFINITY;
  EXPECT_THAT(console_line(metrics, 2000, 0, 1), HasSubstr("loss inf |"));
}

TEST(ValidationLine, IsTheAgreedLine) {
  EXPECT_EQ(validation_line(120, 3.3, 1.9), "val step 120 | loss 3.3000 | 1.9 s");
}

TEST(StepTimer, LeavesTheWarmUpOutAndIsNotBiasedAtFirst) {
  StepTimer timer;
  StepMetrics metrics = example();
  metrics.warmup = true;
  metrics.step_s = 100;
  timer.add(metrics);
  EXPECT_TRUE(std::isnan(timer.eta_s(10)));
  metrics.warmup = false;
  metrics.step_s = 2;
  timer.add(metrics);
  EXPECT_DOUBLE_EQ(timer.eta_s(10), 20);
  for (int i = 0; i < 500; ++i) {
    metrics.step_s = 3;
    timer.add(metrics);
  }
  EXPECT_NEAR(timer.eta_s(10), 30, 1e-6);
}

TEST(MetricsFile, EveryLineIsAnObjectOnDiskAtOnce) {
  const TemporaryFolder folder;
  MetricsFile file(folder / "metrics.jsonl", "demo/20261129-171835");
  StepMetrics metrics = example();
  metrics.grad_norm = NAN;
  metrics.loss_max = INFINITY;
  file.write(metrics);
  file.write_validation(120, 3.3, 1.9);

  std::ifstream written(folder / "metrics.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(written, line);) lines.push_back(nlohmann::json::parse(line));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["schema"], "foreshard-metrics");
  EXPECT_EQ(lines[0]["run_id"], "demo/20261129-171835");
  EXPECT_EQ(lines[1]["step"], 120);
  EXPECT_EQ(lines[1]["loss"], 3.21451);
  EXPECT_TRUE(lines[1]["grad_norm"].is_null());
  EXPECT_TRUE(lines[1]["loss_max"].is_null());
  EXPECT_EQ(lines[2]["val_loss"], 3.3);
}

TEST(MetricsFile, HasTheAgreedKeys) {
  const TemporaryFolder folder;
  MetricsFile(folder / "m.jsonl", "x").write(example());
  const std::string text = content_of(folder / "m.jsonl");
  const nlohmann::json line = nlohmann::json::parse(text.substr(text.find('\n') + 1));
  for (const char* key : {"step",
                          "time_unix_s",
                          "wall_s",
                          "loss",
                          "loss_max",
                          "grad_norm",
                          "lr",
                          "skipped_steps",
                          "tokens_seen",
                          "step_s",
                          "tps_device",
                          "tps_global",
                          "tflops_device",
                          "mfu_pct",
                          "mem_active_peak_bytes",
                          "mem_reserved_peak_bytes",
                          "compute_s",
                          "comm_s",
                          "comm_exposed_s",
                          "data_s",
                          "idle_s",
                          "rank_skew_s",
                          "warmup"}) {
    EXPECT_TRUE(line.contains(key)) << key;
  }
  EXPECT_EQ(line.size(), 23u);
}

TEST(MetricsFile, GoesOnWhereItStopped) {
  const TemporaryFolder folder;
  MetricsFile(folder / "m.jsonl", "x").write(example());
  MetricsFile(folder / "m.jsonl", "x").write(example());
  const std::string text = content_of(folder / "m.jsonl");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 3);
}

}  // namespace
}  // namespace foreshard::train
