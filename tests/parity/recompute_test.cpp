// Recomputation changes memory and time, never a bit.
#include <gtest/gtest.h>

#include "local_run.hpp"

namespace foreshard::parity {
namespace {

using Mode = plan::Recompute::Mode;

const model::GptConfig with_dropout{
    .layers = 3, .width = 24, .heads = 3, .vocab_size = 29, .max_seq_len = 9, .ffn_width = 40, .dropout = 0.2};

RunSetup setup_of(const plan::Mesh& mesh, plan::Recompute recompute) {
  RunSetup setup{.settings = settings_of(with_dropout, 7, 16, mesh, 2), .dtype = DType::f32, .reference = false};
  setup.settings.schedule.recompute = std::move(recompute);
  setup.learning_rates = std::vector<double>(4, 1e-2);
  setup.batch = [](std::int64_t step) { return formula_batch(16, 7, with_dropout.vocab_size, step, 5); };
  return setup;
}

class Recomputation : public testing::TestWithParam<plan::Recompute> {};

TEST_P(Recomputation, ChangesNoBit) {
  for (const plan::Mesh& mesh : {plan::Mesh{1, 1, 2}, plan::Mesh{2, 2, 2}}) {
    const Outcome none = run(setup_of(mesh, {})), again = run(setup_of(mesh, GetParam()));
    EXPECT_EQ(none.losses, again.losses);
    EXPECT_EQ(none.grad_norms, again.grad_norms);
    EXPECT_EQ(none.first_gradients, again.first_gradients);
    EXPECT_EQ(none.weights, again.weights);
    EXPECT_EQ(none.counters.all_gather.calls, again.counters.all_gather.calls);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Recomputation,
    testing::Values(plan::Recompute{.mode = Mode::selective}, plan::Recompute{.mode = Mode::full},
                    plan::Recompute{.mode = Mode::full, .every = 2},
                    plan::Recompute{.mode = Mode::selective,
                                    .kinds = {model::OpKind::layer_norm, model::OpKind::gelu, model::OpKind::dropout}},
                    plan::Recompute{.mode = Mode::selective, .kinds = {model::OpKind::linear, model::OpKind::add}}));

}  // namespace
}  // namespace foreshard::parity
