// Loss curves of tiny GPT-2 models trained by PyTorch in float64 (tests/golden/make_gpt_golden.py).
#include <gtest/gtest.h>

#include "golden.hpp"

namespace foreshard::parity {
namespace {

using nlohmann::json;

const json& cases() {
  static const json golden = golden_cases("gpt_tiny.json");
  return golden;
}

RunSetup setup_of(const json& golden, int world, bool reference) {
  const json& c = golden.at("config");
  const model::GptConfig model{.layers = c.at("layers"),
                               .width = c.at("width"),
                               .heads = c.at("heads"),
                               .vocab_size = c.at("vocab_size"),
                               .max_seq_len = c.at("max_seq_len"),
                               .tied_head = c.at("tied_head")};
  return golden_setup(golden, model, world, reference);
}

constexpr Variant variants[] = {{0, 1}, {0, 3}, {1, 1}, {1, 2}, {1, 4}, {2, 1},  {2, 3}, {3, 1},
                                {3, 3}, {4, 1}, {4, 3}, {5, 1}, {5, 3}, {6, 1},  {6, 3}, {7, 1},
                                {7, 3}, {8, 1}, {8, 3}, {9, 1}, {9, 3}, {10, 1}, {10, 3}};

class Golden : public testing::TestWithParam<Variant> {
 protected:
  static const json& golden() { return cases().at(static_cast<std::size_t>(GetParam().index)); }
};

TEST_P(Golden, ReferenceKernelsRepeatPyTorchInDouble) {
  expect_golden(golden(), run(setup_of(golden(), GetParam().ranks, true)), 1e-10);
}

TEST_P(Golden, CpuKernelsFollowPyTorchInFloat) {
  expect_golden(golden(), run(setup_of(golden(), GetParam().ranks, false)), 2e-4);
}

class Autocast : public Golden {};

/// Autocast itself ends 3 % from float64 here, as Adam takes steps of one size for gradients of any. It keeps the
/// residual stream and norms in fp32 where our blocks hand over bf16: both round products to 2⁻⁸, which a loss averages
/// over all tokens.
TEST_P(Autocast, LossesInBf16FollowPyTorchs) {
  RunSetup setup = setup_of(golden(), GetParam().ranks, false);
  setup.settings.schedule.precision.parameters = DType::bf16;
  const Outcome outcome = run(setup);
  const auto losses = golden().at("autocast_losses").get<std::vector<double>>();
  for (std::size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(outcome.losses[i], losses[i], 0.04 * losses[i]) << "step " << i + 1;
}

constexpr Variant autocast_variants[] = {{10, 1}, {10, 3}};
INSTANTIATE_TEST_SUITE_P(PyTorch, Autocast, testing::ValuesIn(autocast_variants),
                         [](const auto& test) { return name_of(cases(), test.param); });

INSTANTIATE_TEST_SUITE_P(PyTorch, Golden, testing::ValuesIn(variants),
                         [](const auto& test) { return name_of(cases(), test.param); });

TEST(GoldenFile, HasAllCases) { EXPECT_EQ(cases().size(), 11U); }

}  // namespace
}  // namespace foreshard::parity
