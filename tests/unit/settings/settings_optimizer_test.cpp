#include "plan/settings_optimizer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "plan/settings.hpp"

namespace foreshard::plan {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Settings settings_of(std::vector<const char*> words) {
  Config config("foreshard-test");
  add_plan_keys(config);
  words.insert(words.begin(), {"foreshard-test", "--model.preset=byte-tiny"});
  config.parse(static_cast<int>(words.size()), words.data());
  return read_settings(config, 2);
}

std::string problems_of(std::vector<const char*> words) {
  try {
    settings_of(std::move(words));
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

std::int64_t optimizer_bytes(const Settings& settings) {
  const Plan plan = build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.memory == MemoryClass::optimizer) bytes += buffer.size_bytes;
  return bytes;
}

TEST(OptimizerSettings, NamesBecomeUpdates) {
  EXPECT_EQ(settings_of({}).schedule.update, OpKind::adamw);
  EXPECT_EQ(settings_of({"--optimizer.name=adam"}).schedule.update, OpKind::adam);
  EXPECT_EQ(settings_of({"--optimizer.name=lion"}).schedule.update, OpKind::lion);
  EXPECT_EQ(settings_of({"--optimizer.name=sgd"}).schedule.update, OpKind::sgd);
  EXPECT_EQ(settings_of({"--optimizer.name=sgd", "--optimizer.momentum=0.9"}).schedule.update, OpKind::sgd_momentum);
}

// AdamW's two moments are twice the parameters: 2 · 4 bytes each.
TEST(OptimizerSettings, MomentsTakeMemoryOnlyWhereTheOptimizerKeepsThem) {
  const std::int64_t two = optimizer_bytes(settings_of({}));
  EXPECT_GE(two, 2 * 4 * model::build(settings_of({}).model, settings_of({}).batch).parameter_count() / 2);
  EXPECT_EQ(optimizer_bytes(settings_of({"--optimizer.name=adam"})), two);
  EXPECT_EQ(optimizer_bytes(settings_of({"--optimizer.name=lion"})), two / 2);
  EXPECT_EQ(optimizer_bytes(settings_of({"--optimizer.name=sgd", "--optimizer.momentum=0.9"})), two / 2);
  EXPECT_EQ(optimizer_bytes(settings_of({"--optimizer.name=sgd"})), 0);
}

TEST(OptimizerSettings, WhatNeedsWholeTensorsIsRefusedWithTheReason) {
  EXPECT_THAT(problems_of({"--optimizer.name=lamb"}),
              AllOf(HasSubstr("optimizer.name = lamb: needs the norm of each whole parameter"),
                    HasSubstr("element by element"), HasSubstr("adamw, adam, sgd, lion")));
  for (const char* name : {"--optimizer.name=muon", "--optimizer.name=shampoo", "--optimizer.name=adafactor"})
    EXPECT_THAT(problems_of({name}), HasSubstr("needs rows and columns of each whole parameter")) << name;
}

TEST(OptimizerSettings, UnknownNamesGetTheNearestOffered) {
  EXPECT_THAT(problems_of({"--optimizer.name=adamv"}),
              AllOf(HasSubstr("optimizer.name = adamv: unknown"), HasSubstr("Did you mean `adamw`?")));
}

TEST(OptimizerSettings, MomentumBelongsToSgd) {
  EXPECT_THAT(problems_of({"--optimizer.momentum=0.9"}),
              AllOf(HasSubstr("optimizer.momentum = 0.9 belongs to optimizer.name = sgd"), HasSubstr("beta1")));
}

TEST(OptimizerSettings, NormTypes) {
  EXPECT_EQ(settings_of({}).schedule.norm_power, 2);
  EXPECT_EQ(settings_of({"--train.norm_type=1"}).schedule.norm_power, 1);
  EXPECT_EQ(settings_of({"--train.norm_type=3"}).schedule.norm_power, 3);
  EXPECT_TRUE(std::isinf(settings_of({"--train.norm_type=inf"}).schedule.norm_power));
  EXPECT_THAT(problems_of({"--train.norm_type=4"}), HasSubstr("inf"));
}

}  // namespace
}  // namespace foreshard::plan
