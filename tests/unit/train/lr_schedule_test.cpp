#include "train/lr_schedule.hpp"

#include <gtest/gtest.h>

namespace foreshard::train {
namespace {

constexpr LrSchedule schedule{.peak = 1e-3, .steps = 110, .warmup_steps = 10, .min_factor = 0.1};

TEST(LearningRate, RisesLinearlyToThePeak) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1), 1e-4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 5), 5e-4);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 10), 1e-3);
}

// Step s of llm.c (from 0) is s + 1 here; its get_learning_rate_cosine, evaluated by hand.
TEST(LearningRate, FallsAsACosine) {
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 11), 1e-3) << "p = 0";
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 61), 1e-3 * (0.1 + 0.9 * 0.5)) << "p = 1/2";
  EXPECT_NEAR(learning_rate(schedule, 36), 1e-3 * (0.1 + 0.9 * 0.8535533905932737), 1e-15) << "p = 1/4";
  EXPECT_NEAR(learning_rate(schedule, 110), 1e-4, 1e-6);
  EXPECT_DOUBLE_EQ(learning_rate(schedule, 1000), 1e-4) << "stays at the floor";
}

TEST(LearningRate, NeedsNoWarmUp) {
  LrSchedule other = schedule;
  other.warmup_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(other, 1), 1e-3);
  other.steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(other, 1), 1e-3);
}

TEST(LearningRate, OtherDecays) {
  LrSchedule other = schedule;
  other.decay = LrSchedule::Decay::linear;
  EXPECT_DOUBLE_EQ(learning_rate(other, 36), 1e-3 * (0.1 + 0.9 * 0.75));
  other.decay = LrSchedule::Decay::none;
  EXPECT_DOUBLE_EQ(learning_rate(other, 110), 1e-3);
}

// 110 steps, of which the last 20 decay: steps 11 to 91 at the peak, then a straight line down to the floor behind 110.
TEST(LearningRate, StaysAtThePeakAndDecaysAtTheEnd) {
  LrSchedule wsd = schedule;
  wsd.decay = LrSchedule::Decay::warmup_stable_decay;
  wsd.decay_steps = 20;
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 5), 5e-4) << "warm-up as ever";
  for (const int step : {11, 50, 90, 91}) EXPECT_DOUBLE_EQ(learning_rate(wsd, step), 1e-3) << step;
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 101), 1e-3 * (0.1 + 0.9 * 0.5));
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 110), 1e-3 * (0.1 + 0.9 * 0.05));
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 111), 1e-4);
  wsd.decay_steps = 0;
  EXPECT_DOUBLE_EQ(learning_rate(wsd, 100), 1e-3) << "a tenth: the last 11";
  EXPECT_LT(learning_rate(wsd, 101), 1e-3);
  wsd.decay_steps = 1000;
  LrSchedule linear = schedule;
  linear.decay = LrSchedule::Decay::linear;
  for (const int step : {11, 50, 110}) EXPECT_DOUBLE_EQ(learning_rate(wsd, step), learning_rate(linear, step)) << step;
}

TEST(LearningRate, IsReadFromItsKeys) {
  Config config("foreshard-test");
  add_lr_keys(config);
  const char* words[] = {"foreshard-test", "--optimizer.lr=0.5", "--lr_scheduler.warmup_steps=3",
                         "--lr_scheduler.decay=linear", "--lr_scheduler.min_lr_factor=0.2"};
  config.parse(5, words);
  const LrSchedule read = read_lr_schedule(config, 77);
  EXPECT_EQ(read.peak, 0.5);
  EXPECT_EQ(read.steps, 77);
  EXPECT_EQ(read.warmup_steps, 3);
  EXPECT_EQ(read.min_factor, 0.2);
  EXPECT_EQ(read.decay, LrSchedule::Decay::linear);
}

}  // namespace
}  // namespace foreshard::train
