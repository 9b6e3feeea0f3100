#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sim/runtimes/torch_model.hpp"
#include "sim/runtimes/torch_step.hpp"

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
  EXPECT_GE(modelled, 30) << "all but MPT with biases";
}

TEST(TorchModels, DeepVitIsRefusedByName) {
  std::vector<std::string> problems;
  eager_model_of(model::preset("deepvit-16b"), problems);
  EXPECT_THAT(problems, testing::ElementsAre(testing::HasSubstr("DeepViT is not modelled for PyTorch")));
}

TEST(TorchModels, DropoutIsThatOfTheConfiguration) {
  std::vector<std::string> problems;
  EXPECT_FALSE(std::get<Decoder>(eager_model_of(model::GptConfig{}, problems)).dropout);
  EXPECT_TRUE(std::get<Decoder>(eager_model_of(model::GptConfig{.dropout = 0.1}, problems)).dropout);
  EXPECT_TRUE(problems.empty());
}

/// Keys and values of both attentions of every decoder block outlive a forward that recomputes them later.
TEST(TorchModels, TheDecodersCacheLivesUntilBackwardHasEnded) {
  TorchRun run;
  T5 model{.width = 64, .head_width = 16, .ffn = 128, .layers = 3, .heads = 8, .vocab = 100, .written_out = true};
  run.runtime = Runtime::fsdp1, run.batch = {2, 32}, run.recompute = true;
  const auto memory = [&](bool returns_cache) {
    model.returns_cache = returns_cache, run.model = model;
    return live_memory(run, 2).steps.back();
  };
  constexpr std::int64_t tensors = 3 * 4, elements = 2 * 32 * 8 * 16, bf16 = 2;
  EXPECT_EQ(memory(true).after_forward - memory(false).after_forward, tensors * elements * bf16);
  EXPECT_EQ(memory(true).after_step, memory(false).after_step);
}

/// sdpa keeps a mask of each block that has a window and whose sequence is as long; FlashAttention needs none.
TEST(TorchModels, AWindowIsAMaskOfSdpaAlone) {
  Decoder model{.width = 64, .ffn = 128, .layers = 3, .heads = 4, .kv_heads = 4, .vocab = 100, .tied = false};
  model.family = Decoder::Family::llama;
  const auto after_forward = [&](std::int64_t window, std::int64_t full_layers, bool passes_window) {
    model.window = window, model.full_layers = full_layers;
    TorchRun run{.runtime = Runtime::fsdp2, .model = model, .batch = {2, 32}};
    run.traits.passes_window = passes_window;
    return live_memory(run, 2).steps.back().after_forward;
  };
  constexpr std::int64_t mask = 2 * 32 * 32 * 2;  // bf16 for each sequence's pairs
  EXPECT_EQ(after_forward(8, 0, false) - after_forward(0, 0, false), 3 * mask);
  EXPECT_EQ(after_forward(8, 1, false) - after_forward(0, 0, false), 2 * mask);
  EXPECT_EQ(after_forward(32, 0, false) - after_forward(0, 0, false), 3 * mask) << "as long as the window is enough";
  EXPECT_EQ(after_forward(33, 0, false), after_forward(0, 0, false));
  EXPECT_EQ(after_forward(8, 0, true), after_forward(0, 0, false));
}

TEST(TorchModels, WhatTransformersHasNotIsRefused) {
  std::vector<std::string> problems;
  eager_model_of(model::preset("mpt-7b-benchmark"), problems);
  eager_model_of(model::T5Config{.decoder_layers = 3}, problems);
  eager_model_of(model::ProfileConfig{.units = {{.name = "empty"}}}, problems);
  EXPECT_THAT(problems, testing::ElementsAre(testing::HasSubstr("MPT with biases"),
                                             testing::HasSubstr("T5 is modelled"), testing::HasSubstr("profile")));
}

}  // namespace
}  // namespace foreshard::sim::torch
