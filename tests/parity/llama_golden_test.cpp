// Loss curves of tiny models of Hugging Face's Llama, Mistral and Qwen2, trained by PyTorch
// (tests/golden/make_llama_golden.py).
#include <gtest/gtest.h>

#include "golden.hpp"

namespace foreshard::parity {
namespace {

using nlohmann::json;

const json& cases() {
  static const json golden = golden_cases("llama_tiny.json");
  return golden;
}

model::LlamaConfig model_of(const json& c) {
  return {.layers = c.at("layers"),
          .width = c.at("width"),
          .heads = c.at("heads"),
          .vocab_size = c.at("vocab_size"),
          .max_seq_len = c.at("max_seq_len"),
          .ffn_width = c.at("ffn_width"),
          .kv_heads = c.at("kv_heads"),
          .head_width = c.value("head_width", 0),
          .tied_head = c.value("tied_head", false),
          .qkv_bias = c.value("qkv_bias", false),
          .output_bias = c.value("output_bias", false),
          .ffn_bias = c.value("ffn_bias", false),
          .norm_epsilon = c.at("norm_epsilon"),
          .rope_theta = c.at("rope_theta"),
          .window = c.value("window", 0),
          .full_layers = c.value("full_layers", 0)};
}

class LlamaGolden : public testing::TestWithParam<Variant> {
 protected:
  static const json& golden() { return cases().at(static_cast<std::size_t>(GetParam().index)); }
  static Outcome outcome(bool reference) {
    return run(golden_setup(golden(), model_of(golden().at("config")), GetParam().ranks, reference));
  }
};

TEST_P(LlamaGolden, ReferenceKernelsRepeatPyTorchInDouble) { expect_golden(golden(), outcome(true), 1e-10); }

TEST_P(LlamaGolden, CpuKernelsFollowPyTorchInFloat) { expect_golden(golden(), outcome(false), 2e-4); }

TEST_P(LlamaGolden, CpuKernelsFollowUnchangedModules) {
  const auto losses = golden().at("stock_losses").get<std::vector<double>>(), ours = outcome(false).losses;
  ASSERT_EQ(ours.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(ours[i], losses[i], 2e-4 * losses[i]) << "step " << i + 1;
}

constexpr Variant variants[] = {{0, 1}, {0, 3}, {1, 1}, {1, 3}, {2, 1}, {2, 2}, {2, 4},
                                {3, 1}, {3, 3}, {4, 1}, {4, 3}, {5, 1}, {5, 2}};
INSTANTIATE_TEST_SUITE_P(HuggingFace, LlamaGolden, testing::ValuesIn(variants),
                         [](const auto& test) { return name_of(cases(), test.param); });

TEST(LlamaGoldenFile, HasAllCases) { EXPECT_EQ(cases().size(), 6U); }

}  // namespace
}  // namespace foreshard::parity
