// Loss curves of tiny models of Hugging Face's ViT, and of DeepViT, trained by PyTorch
// (tests/golden/make_vit_golden.py, make_deepvit_golden.py).
#include <gtest/gtest.h>

#include "golden.hpp"

namespace foreshard::parity {
namespace {

using nlohmann::json;

const json& cases() {
  static const json golden = [] {
    json all = golden_cases("vit_tiny.json");
    for (const json& deep : golden_cases("deepvit_tiny.json")) all.push_back(deep);
    return all;
  }();
  return golden;
}

model::VitConfig model_of(const json& c) {
  const std::int64_t across = c.at("image_size").get<int>() / c.at("patch_size").get<int>();
  const std::int64_t side = c.at("patch_size");
  return {.layers = c.at("layers"),
          .width = c.at("width"),
          .heads = c.at("heads"),
          .ffn_width = c.at("ffn_width"),
          .patches = across * across,
          .patch_values = c.at("channels").get<int>() * side * side,
          .classes = c.at("classes"),
          .qkv_bias = c.at("qkv_bias"),
          .exact_gelu = c.at("activation") == "gelu",
          .reattention = c.value("reattention", false)};
}

/// As the script makes them.
train::Batch images_of(const model::VitConfig& model, std::int64_t count, std::int64_t step) {
  train::Batch batch;
  for (std::int64_t n = 0; n < count; ++n) {
    batch.targets.push_back(static_cast<std::int32_t>((3 * n + step) % model.classes));
    for (std::int64_t i = 0; i < model.patches * model.patch_values; ++i)
      batch.images.push_back(static_cast<float>((7 * i * i + 3 * i + 31 * n + 5 * step) % 256) / 127.5F - 1);
  }
  return batch;
}

class VitGolden : public testing::TestWithParam<Variant> {
 protected:
  static const json& golden() { return cases().at(static_cast<std::size_t>(GetParam().index)); }
  static Outcome outcome(bool reference) {
    const model::VitConfig model = model_of(golden().at("config"));
    RunSetup setup = golden_setup(golden(), model, GetParam().ranks, reference);
    setup.batch = [model, count = golden().at("batch").get<int>() * golden().at("micro_batches").get<int>()](
                      std::int64_t step) { return images_of(model, count, step - 1); };
    return run(setup);
  }
};

TEST_P(VitGolden, ReferenceKernelsRepeatPyTorchInDouble) { expect_golden(golden(), outcome(true), 1e-10); }

TEST_P(VitGolden, CpuKernelsFollowPyTorchInFloat) { expect_golden(golden(), outcome(false), 2e-4); }

TEST_P(VitGolden, CpuKernelsFollowUnchangedModules) {
  const auto losses = golden().at("stock_losses").get<std::vector<double>>(), ours = outcome(false).losses;
  ASSERT_EQ(ours.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(ours[i], losses[i], 2e-4 * losses[i]) << "step " << i + 1;
}

constexpr Variant variants[] = {{0, 1}, {0, 3}, {1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 3}, {3, 1}, {3, 2}, {3, 4}};
INSTANTIATE_TEST_SUITE_P(HuggingFace, VitGolden, testing::ValuesIn(variants),
                         [](const auto& test) { return name_of(cases(), test.param); });

TEST(VitGoldenFile, HasAllCases) { EXPECT_EQ(cases().size(), 4U); }

TEST(VitGoldenFile, ReattentionHasTheParametersOfTheModule) {
  for (const json& deep : golden_cases("deepvit_tiny.json")) {
    const model::Graph graph = model::build(model_of(deep.at("config")), {1, 1});
    EXPECT_EQ(graph.parameter_count(), deep.at("parameters").get<std::int64_t>()) << deep.at("name");
  }
}

}  // namespace
}  // namespace foreshard::parity
