// One rank on a CUDA device, in every pair of settings, against one rank on processor cores in double.
#include "on_device.hpp"

namespace foreshard::parity {
namespace {

using Parity = OnDevice;

TEST_F(Parity, EveryCombinationEqualsProcessorCores) {
  for (const Combination& c : combinations()) {
    const Outcome &truth = one_rank(c), seen = run(on_device(setup_of(c, plan::Mesh{})));
    const bool mixed = is_mixed(c);
    for (std::size_t i = 0; i < truth.losses.size(); ++i)
      EXPECT_NEAR(seen.losses[i], truth.losses[i], (mixed ? 8e-3 : 1e-5) * truth.losses[i]) << text_of(c);
    EXPECT_LE(distance(truth.first_gradients, seen.first_gradients), mixed ? 0.1 : 1e-4) << text_of(c);
  }
}

TEST_F(Parity, GraphsGiveTheSameBitsAsOps) {
  for (const Combination& c : combinations()) {
    const Outcome ops = run(on_device(setup_of(c, plan::Mesh{}), {.graphs = false})),
                  graphs = run(on_device(setup_of(c, plan::Mesh{}), {.graphs = true}));
    EXPECT_EQ(ops.losses, graphs.losses) << text_of(c);
    EXPECT_TRUE(ops.weights == graphs.weights) << text_of(c);
  }
}

/// With the algorithms and fused products that this device is fastest with.
TEST_F(Parity, ChosenKernelsEqualTheLibrarysFirst) {
  const model::GptConfig small{.layers = 2, .width = 64, .heads = 2, .vocab_size = 40, .max_seq_len = 32};
  RunSetup setup{.settings = settings_of(small, 32, 4, plan::Mesh{})};
  setup.settings.schedule.precision = {.parameters = DType::bf16, .reduction = DType::f32};
  setup.learning_rates = {1e-2, 1e-2};
  setup.batch = [&](std::int64_t step) { return formula_batch(4, 32, small.vocab_size, step, 5); };
  RunSetup chosen = setup;
  chosen.before_step = [](train::TrainingRank& rank, int, std::int64_t) {
    rank.engine().use_kernels(rank.engine().measure_kernels(rank.plan()), rank.plan());
  };
  const Outcome truth = run(on_device(setup)), seen = run(on_device(chosen));
  for (std::size_t i = 0; i < truth.losses.size(); ++i)
    EXPECT_NEAR(seen.losses[i], truth.losses[i], 8e-3 * truth.losses[i]);
  EXPECT_LE(distance(truth.first_gradients, seen.first_gradients), 0.1);
}

TEST_F(Parity, TwoRunsHaveTheSameBits) {
  const Combination plainest(choices().size());
  const Outcome first = run(on_device(setup_of(plainest, plan::Mesh{}))),
                second = run(on_device(setup_of(plainest, plan::Mesh{})));
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_TRUE(first.weights == second.weights);
}

}  // namespace
}  // namespace foreshard::parity
