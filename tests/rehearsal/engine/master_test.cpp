// Parameters kept in bf16 on rehearsed devices: rounded by the random bits of each step, replayed or not, as on
// processor cores.
#include <gmock/gmock.h>

#include "expect.hpp"
#include "kept_in_bf16.hpp"
#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

using plan::Mesh;

/// The first step is captured, the others are replays.
RunSetup of_few_steps(RunSetup setup) {
  setup.learning_rates.resize(3);
  return setup;
}

TEST(RehearsedMasterInBf16, ReplaysRoundAsOpsDo) {
  const RunSetup setup = of_few_steps(kept_in_bf16({.inner = 2}, 2));
  expect_same_bits(run_rehearsed(setup, {.graphs = false}), run_rehearsed(setup, {.graphs = true}));
  EXPECT_THAT(rehearsal::reports(), testing::IsEmpty());
}

TEST(RehearsedMasterInBf16, EachReplayRoundsInItsOwnWay) {
  expect_other_bits_in_each_step(on_rehearsed_devices(decaying({.inner = 2}), {.graphs = true}));
}

/// Where gradients are zero, no order of sums is in an update.
TEST(RehearsedMasterInBf16, RoundsAsProcessorCoresDo) {
  const Outcome cores = run(of_few_steps(decaying({})));
  for (const Mesh& mesh : {Mesh{}, Mesh{2, 1, 2}})
    EXPECT_TRUE(run_rehearsed(of_few_steps(decaying(mesh)), {.graphs = true}).weights == cores.weights)
        << mesh.world_size();
}

TEST(RehearsedMasterInBf16, OffloadChangesNoBit) {
  RunSetup offloaded = of_few_steps(kept_in_bf16({.inner = 2}));
  const Outcome expected = run_rehearsed(offloaded);
  offloaded.settings.schedule.offload = {true, true, true};
  const Outcome in_host = run_rehearsed(offloaded);
  EXPECT_EQ(in_host.losses, expected.losses);
  EXPECT_TRUE(in_host.weights == expected.weights);
}

TEST(RehearsedMasterInBf16, LossesStayNearThoseInDouble) {
  const Outcome truth = run(of_few_steps(in_double({}))), seen = run_rehearsed(of_few_steps(kept_in_bf16({2, 1, 2})));
  for (std::size_t i = 0; i < truth.losses.size(); ++i)
    EXPECT_NEAR(seen.losses[i], truth.losses[i], 1e-2 * truth.losses[i]) << "step " << i + 1;
}

}  // namespace
}  // namespace foreshard::parity
