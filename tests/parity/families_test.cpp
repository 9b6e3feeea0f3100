// Models of every family: no mesh, strategy, schedule, grouping into units or recomputation changes what is computed,
// and memory is what the plan says.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/glob.hpp"
#include "delays.hpp"
#include "expect.hpp"
#include "families.hpp"

namespace foreshard::parity {
namespace {

using plan::Accumulation;
using plan::BackwardPrefetch;
using plan::Keep;
using plan::Mesh;
using Mode = plan::Recompute::Mode;

constexpr std::int64_t global_rows = 24;
constexpr double tolerance = 1e-11;  // Adam amplifies the rounding of gradients that are nothing but rounding

class Families : public testing::TestWithParam<Family> {
 protected:
  static RunSetup setup_of(const Mesh& mesh, int micro_batches = 1, std::int64_t rows = global_rows) {
    const Family& family = GetParam();
    RunSetup setup{.settings = settings_of(family.model, family.seq, rows, mesh, micro_batches)};
    setup.learning_rates = std::vector<double>(4, 1e-2);
    setup.batch = [&family, rows](std::int64_t step) { return family.batch(rows, step); };
    return setup;
  }

  static RunSetup in_float(const Mesh& mesh, int micro_batches = 1, std::int64_t rows = global_rows) {
    RunSetup setup = setup_of(mesh, micro_batches, rows);
    setup.dtype = DType::f32;
    setup.reference = false;
    return setup;
  }

  static Outcome run_without_noise(const RunSetup& setup) { return without_noise(GetParam(), run(setup)); }
};

TEST_P(Families, EveryMeshEqualsOneRank) {
  const Outcome one = run_without_noise(setup_of({}));
  for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{1, 1, 3}, Mesh{2, 1, 1}, Mesh{1, 2, 2}, Mesh{2, 2, 3}})
    expect_close(one, run_without_noise(setup_of(mesh)), tolerance, std::to_string(mesh.world_size()));
}

TEST_P(Families, EveryMeshOfEightHasTheSameBits) {
  const Outcome expected = run(in_float({1, 1, 8}, 3));
  for (const Mesh& mesh : {Mesh{8, 1, 1}, Mesh{2, 1, 4}, Mesh{1, 2, 4}, Mesh{2, 2, 2}, Mesh{1, 8, 1}})
    expect_same_bits(expected, run(in_float(mesh, 3)));
}

TEST_P(Families, AccumulationEqualsOneMicroBatch) {
  const Outcome one = run_without_noise(setup_of({1, 1, 2}));
  for (const Accumulation accumulation : {Accumulation::reduce, Accumulation::reduce_scatter, Accumulation::no_sync}) {
    RunSetup setup = setup_of({1, 1, 2}, 3);
    setup.settings.schedule.accumulation = accumulation;
    expect_close(one, run_without_noise(setup), tolerance);
  }
}

TEST_P(Families, WhatIsKeptChangesNoBit) {
  for (const Accumulation accumulation : {Accumulation::reduce, Accumulation::reduce_scatter, Accumulation::no_sync}) {
    RunSetup setup = in_float({2, 2, 2}, 3);
    setup.settings.schedule.accumulation = accumulation;
    const Outcome expected = run(setup);
    for (const Keep keep : {Keep::micro_batch, Keep::step}) {
      setup.settings.schedule.keep = keep;
      expect_same_bits(expected, run(setup));
    }
  }
}

TEST_P(Families, UnitsOfAnyKindChangeNothing) {
  const Outcome expected = run_without_noise(setup_of({1, 1, 2}));
  for (const plan::Wrap& wrap : GetParam().wraps) {
    RunSetup setup = setup_of({1, 1, 2});
    setup.settings.schedule.wrap = wrap;
    expect_close(expected, run_without_noise(setup), tolerance);
  }
}

TEST_P(Families, PrefetchAndLimitsChangeNoBit) {
  RunSetup setup = in_float({1, 1, 2}, 2);
  const Outcome expected = run(setup);
  for (const BackwardPrefetch prefetch : {BackwardPrefetch::none, BackwardPrefetch::post, BackwardPrefetch::pre})
    for (const int depth : {0, 1, 3})
      for (const int limit : {1, 2, plan::unlimited}) {
        setup.settings.schedule = {.prefetch = prefetch,
                                   .prefetch_depth = std::max(1, depth),
                                   .forward_prefetch = depth,
                                   .gather_limit = limit,
                                   .reduce_limit = limit,
                                   .micro_batches = 2};
        expect_same_bits(expected, run(setup), std::to_string(depth) + ", " + std::to_string(limit));
      }
}

TEST_P(Families, LanesAndRanksMayBeLate) {
  RunSetup setup = in_float({1, 1, 4}, 2);
  const Outcome expected = run(setup);
  for (const plan::Lane lane : {plan::Lane::compute, plan::Lane::gather, plan::Lane::reduce}) {
    setup.before_op = Delays(4, lane);
    expect_same_bits(expected, run(setup));
  }
}

TEST_P(Families, RecomputationChangesNoBit) {
  for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{2, 2, 2}}) {
    RunSetup setup = in_float(mesh, 3);
    const Outcome expected = run(setup);
    for (const plan::Recompute& what : GetParam().recomputes) {
      setup.settings.schedule.recompute = what;
      expect_same_bits(expected, run(setup));
    }
  }
}

TEST_P(Families, HalvesFollowFloat) {
  const Outcome expected = run(in_float({1, 1, 2}));
  for (const DType type : {DType::bf16, DType::f16}) {
    RunSetup setup = in_float({1, 1, 2});
    setup.settings.schedule.precision.parameters = type;
    const Outcome outcome = run(setup);
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
      EXPECT_NEAR(outcome.losses[i], expected.losses[i], 0.02 * expected.losses[i]) << name_of(type);
  }
}

TEST_P(Families, FrozenParametersStayAsTheyAre) {
  RunSetup setup = in_float({1, 1, 2});
  setup.settings.schedule.wrap.frozen = GetParam().frozen;
  const Outcome after = run(setup);
  setup.learning_rates = {};
  const Outcome before = run(setup);
  for (const auto& [name, values] : before.weights) {
    const bool frozen =
        std::ranges::any_of(GetParam().frozen, [&](const auto& glob) { return matches_glob(glob, name); });
    EXPECT_EQ(values == after.weights.at(name), frozen) << name;
  }
}

TEST_P(Families, TheArenaIsWhatThePlanSays) {
  for (const bool recompute : {false, true}) {
    RunSetup setup = in_float({1, 1, 2}, 2);
    if (recompute) setup.settings.schedule.recompute.mode = Mode::full;
    expect_the_planned_arena(setup);
  }
}

INSTANTIATE_TEST_SUITE_P(Odd, Families, testing::ValuesIn(families()),
                         [](const auto& family) { return family.param.name; });

}  // namespace
}  // namespace foreshard::parity
