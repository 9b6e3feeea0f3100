// Models by their profile in PyTorch's FSDP: what is computed, kept and waited for is what the profile says.
#include <gtest/gtest.h>

#include "sim/gpu_rates.hpp"
#include "sim/runtimes/torch_prediction.hpp"
#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {
namespace {

const model::ProfiledUnit block{.name = "block",
                                .parameters = 8'000'003,
                                .forward_flops = 1'000'000'000'000,
                                .backward_flops = 3'000'000'000'000,
                                .activation_bytes = 60'000'000,
                                .output_values = 1'000'000,
                                .operators = 4};
const model::ProfiledUnit head{.name = "head",
                               .parameters = 4'000'000,
                               .forward_flops = 8'000'000,
                               .backward_flops = 16'000'000,
                               .output_values = 4};
constexpr std::int64_t samples = 2;

TorchRun run_of(std::vector<model::ProfiledUnit> units) {
  TorchRun run;
  run.runtime = Runtime::fsdp1, run.batch = {samples, 1}, run.wrap.reduce = DType::bf16;
  run.model = Profiled{.units = std::move(units), .head = head, .part_of_peak = 0.5};
  return run;
}

TEST(TorchProfile, HasTheProfilesParametersInAsManyPartsAsOperators) {
  const UnitShapes shapes = unit_shapes(run_of({block, block}).model);
  ASSERT_EQ(shapes.size(), 3U);
  ASSERT_EQ(shapes[1].size(), 4U);
  EXPECT_EQ(shapes[1][0].elements(), 2'000'000);
  EXPECT_EQ(shapes[1][3].elements(), 2'000'003) << "and the rest";
}

TEST(TorchProfile, TakesTheTimeOfItsFlops) {
  const Cluster cluster = read_cluster("dgx-a100");
  Software software;
  software.varies = false;
  const TorchRun run = run_of({block, block, block});
  const double flops = 3.0 * samples * 4e12, peak = rates_of(cluster.device).half_flops;
  const double seconds = timed_run(run, cluster, software, 3).times.back().compute_busy_s;
  EXPECT_GT(seconds, flops / (0.5 * peak));
  EXPECT_LT(seconds, 1.05 * flops / (0.5 * peak)) << "the update is the rest";
}

TEST(TorchProfile, KeepsTheProfilesBytesForBackward) {
  const auto after_forward = [](std::size_t count) {
    return live_memory(run_of(std::vector(count, block)), 3).steps.back().after_forward;
  };
  // Another unit keeps its activations, and its parameters with two moments in f32.
  constexpr std::int64_t state = 3 * 4 * 8'000'003;
  EXPECT_NEAR(static_cast<double>(after_forward(4) - after_forward(3)), samples * 60e6 + state, 1e6);
}

TEST(TorchProfile, CountsItsFlops) {
  const FlopBasis basis = flop_basis(run_of({block}));
  EXPECT_EQ(basis.parameters, 12'000'003);
  EXPECT_EQ(2 * basis.product_weights, 1e12 + 8e6);
  EXPECT_EQ(2 * basis.gradient_weights, 3e12 + 16e6);
  EXPECT_EQ(basis.tokens, samples);
}

/// SyncBatchNorm reads a count in its forward, which keeps the host from running ahead, whether there is a limiter or
/// not.
TEST(TorchProfile, AHostThatWaitsGathersNothingAhead) {
  const Cluster cluster = read_cluster("dgx-a100");
  const auto active = [&](bool waits, bool limits) {
    TorchJob job;
    model::ProfiledUnit unit = block;
    unit.waits = waits;
    job.run = run_of(std::vector(20, unit));
    job.run.wrap.world = 8, job.run.wrap.limits_gathers = limits, job.run.recompute = true;
    return predict(job, cluster).peaks.back().active;
  };
  constexpr std::int64_t gathered = 2 * 8'000'003;
  EXPECT_GT(active(false, false), active(false, true) + 10 * gathered);
  EXPECT_LT(active(true, false), active(true, true) + 3 * gathered);
}

}  // namespace
}  // namespace foreshard::sim::torch
