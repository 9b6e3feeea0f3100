// Loss curves of tiny models of Hugging Face's T5, trained by PyTorch (tests/golden/make_t5_golden.py).
#include <gtest/gtest.h>

#include "golden.hpp"

namespace foreshard::parity {
namespace {

using nlohmann::json;

const json& cases() {
  static const json golden = golden_cases("t5_tiny.json");
  return golden;
}

model::T5Config::FeedForward feed_forward_of(const std::string& name) {
  using enum model::T5Config::FeedForward;
  return name == "relu" ? relu : name == "gated-gelu" ? gated_gelu : gated_silu;
}

model::T5Config model_of(const json& c) {
  return {.layers = c.at("layers"),
          .width = c.at("width"),
          .heads = c.at("heads"),
          .vocab_size = c.at("vocab_size"),
          .decoder_layers = c.at("decoder_layers"),
          .head_width = c.at("head_width"),
          .ffn_width = c.at("ffn_width"),
          .buckets = c.at("buckets"),
          .max_distance = c.at("max_distance"),
          .tied_head = c.at("tied_head"),
          .feed_forward = feed_forward_of(c.at("feed_forward"))};
}

class T5Golden : public testing::TestWithParam<Variant> {
 protected:
  static const json& golden() { return cases().at(static_cast<std::size_t>(GetParam().index)); }
  static Outcome outcome(bool reference) {
    return run(golden_setup(golden(), model_of(golden().at("config")), GetParam().ranks, reference));
  }
};

TEST_P(T5Golden, ReferenceKernelsRepeatPyTorchInDouble) { expect_golden(golden(), outcome(true), 1e-10); }

TEST_P(T5Golden, CpuKernelsFollowPyTorchInFloat) { expect_golden(golden(), outcome(false), 2e-4); }

TEST_P(T5Golden, CpuKernelsFollowUnchangedModules) {
  const auto losses = golden().at("stock_losses").get<std::vector<double>>(), ours = outcome(false).losses;
  ASSERT_EQ(ours.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(ours[i], losses[i], 2e-4 * losses[i]) << "step " << i + 1;
}

constexpr Variant variants[] = {{0, 1}, {0, 3}, {1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 3}};
INSTANTIATE_TEST_SUITE_P(HuggingFace, T5Golden, testing::ValuesIn(variants),
                         [](const auto& test) { return name_of(cases(), test.param); });

TEST(T5GoldenFile, HasAllCases) { EXPECT_EQ(cases().size(), 3U); }

}  // namespace
}  // namespace foreshard::parity
