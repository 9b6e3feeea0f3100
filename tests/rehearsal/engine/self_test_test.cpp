// The start-up self-test on rehearsed devices: each collective of a plan, on its kind of group and with its types, and
// the products of its types, by the engine's own ops.
#include "train/self_test.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "families.hpp"
#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

class RehearsedSelfTest : public testing::TestWithParam<std::tuple<plan::Mesh, std::optional<DType>>> {};

TEST_P(RehearsedSelfTest, FindsADeviceSoundAndLeavesTheStepAsItWas) {
  const Family& family = families()[0];
  const auto& [mesh, halves] = GetParam();
  RunSetup setup{.settings = settings_of(family.model, family.seq, 8, mesh)};
  setup.settings.schedule.precision.parameters = halves;
  setup.learning_rates = {1e-2, 1e-2};
  setup.batch = [&family](std::int64_t step) { return family.batch(8, step); };
  const Outcome expected = run_rehearsed(setup);
  std::vector<train::SelfTest> results(static_cast<std::size_t>(mesh.world_size()));
  setup.after_step = [&](const StepEnd& end) {
    if (end.step == 1)
      results[static_cast<std::size_t>(end.communicator.rank())] =
          train::self_test(end.communicator, end.rank.plan(), end.rank.engine());
  };
  EXPECT_EQ(run_rehearsed(setup).losses, expected.losses);
  for (const train::SelfTest& result : results) {
    EXPECT_EQ(result.fault, "");
    EXPECT_GE(result.collectives, 4);
    EXPECT_EQ(result.products, halves ? 24 : 12) << "halves into halves and into f32; four lengths, three forms";
  }
  EXPECT_THAT(rehearsal::reports(), testing::IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Plans, RehearsedSelfTest,
                         testing::Combine(testing::Values(plan::Mesh{}, full_shard(2), no_shard(2), plan::Mesh{2, 1, 2},
                                                          plan::Mesh{1, 2, 2}),
                                          testing::Values(std::nullopt, DType::bf16)));

}  // namespace
}  // namespace foreshard::parity
