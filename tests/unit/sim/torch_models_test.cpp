#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/runtimes/torch_model.hpp"

namespace foreshard::sim::torch {
namespace {

std::int64_t parameters_of(const Model& model) {
  std::int64_t all = 0;
  for (const auto& unit : unit_shapes(model))
    for (const ParameterShape& shape : unit) all += shape.elements();
  return all;
}

// The graph that we plan and the modules that PyTorch runs are written down apart, and have the same parameters.
TEST(TorchModels, HaveTheParametersOfTheGraph) {
  int modelled = 0;
  for (const std::string_view name : model::presets()) {
    const model::Config config = model::preset(name);
    std::vector<std::string> problems;
    const Model eager = eager_model_of(config, problems);
    if (!problems.empty()) continue;
    ++modelled;
    EXPECT_EQ(parameters_of(eager), model::build(config, {1, 1}).parameter_count()) << name;
  }
  EXPECT_GE(modelled, 28) << "all but MPT with biases and T5 1.1";
}

TEST(TorchModels, DropoutIsThatOfTheConfiguration) {
  std::vector<std::string> problems;
  EXPECT_FALSE(std::get<Decoder>(eager_model_of(model::GptConfig{}, problems)).dropout);
  EXPECT_TRUE(std::get<Decoder>(eager_model_of(model::GptConfig{.dropout = 0.1}, problems)).dropout);
  EXPECT_TRUE(problems.empty());
}

TEST(TorchModels, WhatTransformersHasNotIsRefused) {
  std::vector<std::string> problems;
  eager_model_of(model::preset("mpt-7b-benchmark"), problems);
  eager_model_of(model::preset("t5-v1.1-xl"), problems);
  eager_model_of(model::ProfileConfig{}, problems);
  eager_model_of(model::LlamaConfig{.lora = {.rank = 8}}, problems);
  EXPECT_THAT(problems,
              testing::ElementsAre(testing::HasSubstr("MPT with biases"), testing::HasSubstr("T5 is modelled"),
                                   testing::HasSubstr("profile"), testing::HasSubstr("model.lora_rank")));
}

}  // namespace
}  // namespace foreshard::sim::torch
