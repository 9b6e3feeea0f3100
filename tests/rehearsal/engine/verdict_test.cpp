// A value that is not finite on one of several rehearsed devices: all ranks skip the same step, whatever is offloaded,
// and nothing of it is left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <mutex>

#include "families.hpp"
#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

constexpr std::int64_t rows = 8, bad_step = 2;

struct Setting {
  plan::Mesh mesh;
  plan::Offload offload = {};
  bool graphs = true;
};

RunSetup setup_of(const Setting& setting) {
  const Family& family = families()[0];
  RunSetup setup{.settings = settings_of(family.model, family.seq, rows, setting.mesh, 2)};
  setup.settings.schedule.offload = setting.offload;
  setup.learning_rates = {1e-2, 2e-2, 3e-2};
  setup.batch = [&family](std::int64_t step) { return family.batch(rows, step); };
  return setup;
}

engine::CudaOptions options(const Setting& setting) { return {.graphs = setting.graphs}; }

/// As if the bad step had never been.
Outcome without_bad_step(const Setting& setting) {
  RunSetup setup = setup_of(setting);
  setup.learning_rates.erase(setup.learning_rates.begin() + bad_step - 1);
  setup.batch = [batch = setup.batch](std::int64_t step) { return batch(step < bad_step ? step : step + 1); };
  return run_rehearsed(setup, options(setting));
}

/// The first element of a rank's shard of the first block; the one that was there.
float exchange(train::TrainingRank& rank, float value) {
  rank.change(rank.parameter_shard(1),
              [&](std::span<std::byte> bytes) { std::swap(value, *reinterpret_cast<float*>(bytes.data())); });
  return value;
}

class RehearsedVerdict : public testing::TestWithParam<Setting> {};

TEST_P(RehearsedVerdict, SkipsTheStepOnAllRanks) {
  const int world = GetParam().mesh.world_size();
  RunSetup setup = setup_of(GetParam());
  float before = 0;
  std::mutex mutex;
  std::vector<std::pair<std::int64_t, bool>> verdicts;
  setup.before_step = [&](train::TrainingRank& rank, int index, std::int64_t step) {
    if (step == bad_step && index == world - 1) before = exchange(rank, std::numeric_limits<float>::infinity());
  };
  setup.after_step = [&](const StepEnd& end) {
    if (end.step == bad_step && end.communicator.rank() == world - 1) exchange(end.rank, before);
    const std::lock_guard lock(mutex);
    verdicts.emplace_back(end.step, end.result.finite);
  };
  const Outcome outcome = run_rehearsed(setup, options(GetParam()));
  ASSERT_EQ(verdicts.size(), 3U * static_cast<std::size_t>(world));
  for (const auto& [step, finite] : verdicts) EXPECT_EQ(finite, step != bad_step) << "step " << step;
  EXPECT_TRUE(outcome.weights == without_bad_step(GetParam()).weights) << "something of the bad step is left";
}

INSTANTIATE_TEST_SUITE_P(Settings, RehearsedVerdict,
                         testing::Values(Setting{{}}, Setting{full_shard(2)}, Setting{full_shard(2), {}, false},
                                         Setting{no_shard(2)}, Setting{{2, 1, 2}}, Setting{{1, 2, 2}},
                                         Setting{full_shard(2), {true, true, true}},
                                         Setting{full_shard(2), {.optimizer = true}}));

/// The scale is taken out again in the update; one that is too large backs off by itself.
TEST(RehearsedLossScale, BacksOffUntilGradientsOfHalvesFit) {
  RunSetup setup = setup_of({full_shard(2)});
  setup.settings.schedule.precision.parameters = DType::f16;
  setup.learning_rates = std::vector<double>(5, 1e-2);
  const Outcome plain = run_rehearsed(setup);
  setup.optimizer.loss_scale = {.dynamic = true, .scale = 0x1p28};
  std::vector<std::pair<bool, double>> seen[2];
  setup.after_step = [&](const StepEnd& end) {
    seen[end.communicator.rank()].emplace_back(end.result.finite, end.rank.scaler().scale());
  };
  const Outcome scaled = run_rehearsed(setup);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_FALSE(seen[0].front().first) << "f16 ends at 65504";
  EXPECT_NEAR(scaled.losses[0], plain.losses[0], 1e-6) << "the loss itself is not scaled";
  double scale = 0x1p28;
  for (const auto& [finite, after] : seen[0]) EXPECT_EQ(after, scale = finite ? scale : scale / 2);
}

}  // namespace
}  // namespace foreshard::parity
