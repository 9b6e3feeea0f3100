#include "train/train_settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/settings.hpp"

namespace foreshard::train {
namespace {

using ::testing::HasSubstr;

TrainSettings settings_of(std::vector<const char*> words) {
  Config config("foreshard-test");
  plan::add_plan_keys(config);
  add_train_keys(config);
  words.insert(words.begin(), {"foreshard-test", "--data.path=x.bin"});
  config.parse(static_cast<int>(words.size()), words.data());
  return read_train_settings(config);
}

std::string problem_of(std::vector<const char*> words) {
  try {
    settings_of(std::move(words));
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(TrainSettings, ADecayOfOneIsRefused) {
  EXPECT_THAT(problem_of({"--optimizer.beta1=1"}), HasSubstr("optimizer.beta1 = 1: expected"));
  EXPECT_THAT(problem_of({"--optimizer.beta2=1"}), HasSubstr("optimizer.beta2 = 1: expected"));
  EXPECT_EQ(problem_of({"--optimizer.beta1=0", "--optimizer.beta2=0.999"}), "");
}

TEST(TrainSettings, RoundingIsOfParametersKeptInBf16) {
  EXPECT_THAT(problem_of({"--optimizer.rounding=nearest"}),
              HasSubstr("optimizer.rounding = nearest with precision.master = fp32"));
  const auto rounds = [](std::vector<const char*> more) {
    more.insert(more.end(), {"--precision.master=bf16", "--precision.param=bf16"});
    return settings_of(more).optimizer.stochastic_rounding;
  };
  EXPECT_TRUE(rounds({}));
  EXPECT_TRUE(rounds({"--optimizer.rounding=stochastic"}));
  EXPECT_FALSE(rounds({"--optimizer.rounding=nearest"}));
}

TEST(TrainSettings, RecordedStepsAreARange) {
  EXPECT_EQ(settings_of({"--trace.steps=3:7"}).trace_first, 3);
  EXPECT_EQ(settings_of({"--trace.steps=3:7"}).trace_last, 7);
  EXPECT_EQ(settings_of({"--trace.steps=:7"}).trace_first, 1);
  EXPECT_EQ(settings_of({"--trace.steps=3:"}).trace_last, INT64_MAX);
  EXPECT_EQ(settings_of({"--trace.steps=3"}).trace_last, 3);
}

TEST(TrainSettings, ARangeThatDoesNotFitSixtyFourBitsIsNotAnotherRange) {
  for (const char* range : {"99999999999999999999:3", "1:99999999999999999999", "3:1", "0:2", "-1:2", "a:b", "1:2:3"})
    EXPECT_THAT(problem_of({"--trace.steps", range}), HasSubstr("expected FIRST:LAST")) << range;
}

TEST(TrainSettings, ABaseInFourBitsIsNotTrained) {
  const auto refusal_of = [](model::Packing base) -> std::string {
    const model::LlamaConfig config{.lora = {.rank = 4, .base = base}};
    const plan::Settings settings{.model = config, .batch = {1, 8}, .mesh = {}, .schedule = {}, .partial = {}};
    try {
      expect_kernels_exist(settings);
    } catch (const InputError& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal_of(model::Packing::none), "");
  EXPECT_THAT(refusal_of(model::Packing::nf4_dq), HasSubstr("model.lora_base = nf4-dq: the engine has no kernels"));
}

TEST(TrainSettings, AnExportNeedsItsFolder) {
  EXPECT_EQ(problem_of({"--checkpoint.export=model.safetensors"}), "");
  EXPECT_THAT(problem_of({"--checkpoint.export=no/such/model.safetensors"}), HasSubstr("there is no folder"));
}

plan::Settings of_vit(const model::VitConfig& model) { return {.model = model}; }

TEST(TrainSettings, ReattentionThatDoesNotFitABlockOfADeviceIsRefused) {
  expect_kernels_exist(of_vit({.reattention = true}));
  expect_fits_devices(of_vit({.reattention = true}));
  const model::VitConfig large{.width = 1024, .heads = 32, .patches = 576, .reattention = true};
  model::VitConfig plain = large;
  plain.reattention = false;
  expect_fits_devices(of_vit(plain));
  try {
    expect_fits_devices(of_vit(large));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_THAT(error.what(), HasSubstr("re-attention of 32 heads over 577 tokens needs"));
  }
}

}  // namespace
}  // namespace foreshard::train
