// Loss curves of tiny GPT-2 models trained by PyTorch in float64 (tests/golden/make_gpt_golden.py).
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "local_run.hpp"

namespace foreshard::parity {
namespace {

using nlohmann::json;

const json& cases() {
  static const json golden = json::parse(std::ifstream(FORESHARD_GOLDEN_DIR "/gpt_tiny.json"));
  return golden.at("cases");
}

RunSetup setup_of(const json& golden, int world, bool reference) {
  const json& c = golden.at("config");
  const model::GptConfig model{.layers = c.at("layers"),
                               .width = c.at("width"),
                               .heads = c.at("heads"),
                               .vocab_size = c.at("vocab_size"),
                               .max_seq_len = c.at("max_seq_len"),
                               .tied_head = c.at("tied_head")};
  const int micro_batches = world == 1 ? golden.at("micro_batches").get<int>() : 1;
  const std::int64_t rows = golden.at("batch").get<int>() * golden.at("micro_batches").get<int>();
  RunSetup setup{.settings = settings_of(model, golden.at("seq"), rows, full_shard(world), micro_batches)};
  setup.seed = golden.at("seed");
  setup.learning_rates = golden.at("learning_rates").get<std::vector<double>>();
  const json& o = golden.at("optimizer");
  setup.optimizer = {o.at("beta1"), o.at("beta2"), o.at("eps"), o.at("weight_decay"), o.at("max_norm")};
  setup.batch = [steps = golden.at("steps")](std::int64_t step) {
    const json& data = steps.at(static_cast<std::size_t>(step - 1));
    return train::Batch{data.at("tokens"), data.at("targets")};
  };
  setup.reference = reference;
  setup.dtype = reference ? DType::f64 : DType::f32;
  return setup;
}

void expect_golden(const json& golden, const Outcome& outcome, double tolerance) {
  const auto losses = golden.at("losses").get<std::vector<double>>(),
             norms = golden.at("gradient_norms").get<std::vector<double>>();
  ASSERT_EQ(outcome.losses.size(), losses.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(outcome.losses[i], losses[i], tolerance * losses[i]) << "step " << i + 1;
    EXPECT_NEAR(outcome.grad_norms[i], norms[i], 10 * tolerance * norms[i]) << "step " << i + 1;
  }
  for (const auto& [name, sum] : golden.at("final_sums_of_squares").items()) {
    const auto& values = outcome.weights.at(name);
    const double squares = std::inner_product(values.begin(), values.end(), values.begin(), 0.0);
    EXPECT_NEAR(squares, sum.get<double>(), 10 * tolerance * std::max(1.0, sum.get<double>())) << name;
  }
}

/// A case, on as many ranks as divide its batch.
struct Variant {
  int index, ranks;
};
constexpr Variant variants[] = {{0, 1}, {0, 3}, {1, 1}, {1, 2}, {1, 4}, {2, 1}, {2, 3}};

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

INSTANTIATE_TEST_SUITE_P(PyTorch, Golden, testing::ValuesIn(variants), [](const auto& test) {
  return cases().at(static_cast<std::size_t>(test.param.index)).at("name").template get<std::string>() + "_" +
         std::to_string(test.param.ranks) + "_ranks";
});

TEST(GoldenFile, HasAllCases) { EXPECT_EQ(cases().size(), 3U); }

}  // namespace
}  // namespace foreshard::parity
