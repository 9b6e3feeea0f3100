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

TEST_F(Parity, TwoRunsHaveTheSameBits) {
  const Combination plainest(choices().size());
  const Outcome first = run(on_device(setup_of(plainest, plan::Mesh{}))),
                second = run(on_device(setup_of(plainest, plan::Mesh{})));
  EXPECT_EQ(first.losses, second.losses);
  EXPECT_TRUE(first.weights == second.weights);
}

}  // namespace
}  // namespace foreshard::parity
