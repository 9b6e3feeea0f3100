// Loss curves of tiny models of Hugging Face's MPT, trained by PyTorch (tests/golden/make_mpt_golden.py).
#include <gtest/gtest.h>

#include "golden.hpp"

namespace foreshard::parity {
namespace {

using nlohmann::json;

const json& cases() {
  static const json golden = golden_cases("mpt_tiny.json");
  return golden;
}

model::MptConfig model_of(const json& c) {
  return {.layers = c.at("layers"),
          .width = c.at("width"),
          .heads = c.at("heads"),
          .vocab_size = c.at("vocab_size"),
          .max_seq_len = c.at("max_seq_len"),
          .tied_head = c.at("tied_head")};
}

class MptGolden : public testing::TestWithParam<Variant> {
 protected:
  static const json& golden() { return cases().at(static_cast<std::size_t>(GetParam().index)); }
  static Outcome outcome(bool reference) {
    return run(golden_setup(golden(), model_of(golden().at("config")), GetParam().ranks, reference));
  }
};

TEST_P(MptGolden, ReferenceKernelsRepeatPyTorchInDouble) { expect_golden(golden(), outcome(true), 1e-10); }

TEST_P(MptGolden, CpuKernelsFollowPyTorchInFloat) { expect_golden(golden(), outcome(false), 2e-4); }

TEST_P(MptGolden, CpuKernelsFollowUnchangedModules) {
  const auto losses = golden().at("stock_losses").get<std::vector<double>>(), ours = outcome(false).losses;
  ASSERT_EQ(ours.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) EXPECT_NEAR(ours[i], losses[i], 2e-4 * losses[i]) << "step " << i + 1;
}

constexpr Variant variants[] = {{0, 1}, {0, 3}, {1, 1}, {1, 2}, {1, 4}};
INSTANTIATE_TEST_SUITE_P(HuggingFace, MptGolden, testing::ValuesIn(variants),
                         [](const auto& test) { return name_of(cases(), test.param); });

TEST(MptGoldenFile, HasAllCases) { EXPECT_EQ(cases().size(), 2U); }

}  // namespace
}  // namespace foreshard::parity
