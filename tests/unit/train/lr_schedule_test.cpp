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
