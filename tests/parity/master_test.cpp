// Parameters kept and updated in bf16, rounded stochastically: the same bits whoever holds them, near fp32 in the end.
#include <gtest/gtest.h>

#include <cmath>

#include "expect.hpp"
#include "kept_in_bf16.hpp"
#include "train/replica_check.hpp"

namespace foreshard::parity {
namespace {

using plan::Mesh;
using plan::Wrap;
using Policy = Wrap::Policy;

/// Losses are 0/0.
void expect_same_weights(const Outcome& a, const Outcome& b) { EXPECT_TRUE(a.weights == b.weights); }

bool are_bf16(const Tensors& weights) {
  for (const auto& [name, values] : weights)
    for (const double x : values)
      if (static_cast<double>(BFloat16(x)) != x) return false;
  return true;
}

TEST(MasterInBf16, LossesStayNearThoseInDouble) {
  const Outcome truth = run(in_double({.inner = 4}));
  for (const bool stochastic : {true, false}) {
    RunSetup setup = kept_in_bf16({.inner = 4});
    setup.optimizer.stochastic_rounding = stochastic;
    const Outcome seen = run(setup);
    for (std::size_t i = 0; i < truth.losses.size(); ++i)
      EXPECT_NEAR(seen.losses[i], truth.losses[i], 1e-2 * truth.losses[i]) << "step " << i + 1;
    EXPECT_TRUE(are_bf16(seen.weights));
  }
}

/// The reference's updates in f64 are rounded by the same random bits as the cpu's in f32.
TEST(MasterInBf16, KernelsAgreeWithTheReference) {
  RunSetup cpu = kept_in_bf16({.inner = 2}), reference = cpu;
  reference.reference = true;
  const Outcome a = run(cpu), b = run(reference);
  for (std::size_t i = 0; i < a.losses.size(); ++i) EXPECT_NEAR(a.losses[i], b.losses[i], 4e-3 * a.losses[i]);
}

TEST(MasterInBf16, NoMeshChangesABit) {
  const Outcome expected = run(kept_in_bf16({.inner = 4}));
  for (const Mesh& mesh : {Mesh{4, 1, 1}, Mesh{2, 1, 2}, Mesh{1, 2, 2}})
    expect_same_bits(expected, run(kept_in_bf16(mesh)));
}

TEST(MasterInBf16, NoNumberOfRanksChangesHowAnUpdateIsRounded) {
  const Outcome one = run(decaying({}));
  for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{1, 1, 4}, Mesh{2, 1, 2}, Mesh{4, 1, 1}, Mesh{1, 1, 8}})
    expect_same_weights(one, run(decaying(mesh)));
}

TEST(MasterInBf16, NoPartitionIntoUnitsChangesHowAnUpdateIsRounded) {
  const Outcome expected = run(decaying({.inner = 2}));
  for (const Wrap& wrap : {Wrap{.policy = Policy::none}, Wrap{.policy = Policy::blocks, .count = 2},
                           Wrap{.policy = Policy::size, .count = 500}, Wrap{.ignored = {"*.bias"}}}) {
    RunSetup setup = decaying({.inner = 2});
    setup.settings.schedule.wrap = wrap;
    expect_same_weights(expected, run(setup));
  }
}

TEST(MasterInBf16, OffloadChangesNoBit) {
  const Outcome expected = run(kept_in_bf16({.inner = 2}, 2));
  for (int bits = 1; bits < 8; ++bits) {
    RunSetup setup = kept_in_bf16({.inner = 2}, 2);
    setup.settings.schedule.offload = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    expect_same_bits(expected, run(setup), std::to_string(bits));
  }
}

TEST(MasterInBf16, ReplicasStayEqual) {
  RunSetup setup = kept_in_bf16({2, 1, 2});
  setup.after_step = [](const StepEnd& end) { EXPECT_EQ(train::replica_fault(end.communicator, end.rank), ""); };
  run(setup);
}

TEST(MasterInBf16, PaddingStaysZero) {
  RunSetup setup = kept_in_bf16({.inner = 8});
  std::int64_t padding = 0;
  setup.after_step = [&](const StepEnd& end) {
    if (end.communicator.rank() != 7) return;
    for (std::uint32_t unit = 0; unit < end.rank.plan().units.size(); ++unit) {
      const plan::FlatParameter& flat = end.rank.plan().units[unit];
      std::vector<std::byte> shard = end.rank.copy_of(end.rank.parameter_shard(unit));
      for (const plan::ShardPart& part : plan::parts_of_shard(flat, 7))
        std::fill_n(shard.begin() + 2 * part.at, 2 * part.count, std::byte{0}), padding -= part.count;
      padding += flat.shard_elements;
      EXPECT_TRUE(std::ranges::all_of(shard, [](std::byte byte) { return byte == std::byte{0}; })) << unit;
    }
  };
  run(setup);
  EXPECT_GT(padding, 0);
}

TEST(MasterInBf16, FrozenParametersKeepTheirInitialValuesRoundedOnce) {
  RunSetup setup = kept_in_bf16({.inner = 2});
  setup.settings.schedule.wrap.frozen = {"*.ln_1.*", "wpe.*"};
  const Outcome trained = run(setup);
  setup.learning_rates = {};
  const Outcome initial = run(setup);
  int frozen = 0;
  for (const auto& [name, values] : initial.weights) {
    const bool is_frozen = name.find(".ln_1.") != name.npos || name.starts_with("wpe.");
    frozen += is_frozen;
    EXPECT_EQ(values == trained.weights.at(name), is_frozen) << name;
  }
  EXPECT_EQ(frozen, 2 * tied.layers + 1);
}

/// What decay alone makes of a parameter: p·(1 − η·λ)ⁿ on average. To nearest, ten steps of 2⁻¹⁰ are all lost.
TEST(MasterInBf16, SmallUpdatesCountOnAverage) {
  const auto sum_of = [](const Tensors& weights) {
    double sum = 0;
    for (const double x : weights.at("wte.weight")) sum += std::abs(x);
    return sum;
  };
  RunSetup setup = decaying({.inner = 2});
  setup.optimizer.groups = {{.patterns = {"*"}, .weight_decay = 1}};
  setup.learning_rates = std::vector<double>(10, 0x1p-10);
  RunSetup still = setup;
  still.learning_rates = {};
  const double initial = sum_of(run(still).weights), count = 37.0 * 24;
  setup.optimizer.stochastic_rounding = false;
  EXPECT_EQ(sum_of(run(setup).weights), initial);
  setup.optimizer.stochastic_rounding = true;
  // An element's neighbours are at most 2⁻⁷ of it apart, so each step's variance is below (2⁻⁷·x)²·2⁻³.
  const double mean_square = 1.6 * std::pow(initial / count, 2),
               deviation = 0x1p-7 * std::sqrt(10 * 0.125 * count * mean_square);
  EXPECT_NEAR(sum_of(run(setup).weights), initial * std::pow(1 - 0x1p-10, 10), 5 * deviation);
}

TEST(MasterInBf16, EachStepRoundsInItsOwnWay) { expect_other_bits_in_each_step(decaying({.inner = 2})); }

}  // namespace
}  // namespace foreshard::parity
