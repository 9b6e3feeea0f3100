// Models of T5's family: no mesh, strategy, schedule or recomputation changes what is computed, though the decoder's
// blocks all read what the encoder made, and all blocks of a stack the bias of its first.
#include <gtest/gtest.h>

#include "delays.hpp"
#include "expect.hpp"

namespace foreshard::parity {
namespace {

using plan::Accumulation;
using plan::Keep;
using plan::Mesh;
using Mode = plan::Recompute::Mode;

// Nothing divides: three heads of five numbers in a width of 14.
const model::T5Config odd_model{.layers = 2,
                                .width = 14,
                                .heads = 3,
                                .vocab_size = 37,
                                .decoder_layers = 3,
                                .head_width = 5,
                                .ffn_width = 23,
                                .buckets = 6,
                                .max_distance = 5,
                                .feed_forward = model::T5Config::FeedForward::gated_gelu};
constexpr std::int64_t seq = 7, rows = 24;
constexpr double tolerance = 1e-11;

RunSetup setup_of(const Mesh& mesh, int micro_batches = 1) {
  RunSetup setup{.settings = settings_of(odd_model, seq, rows, mesh, micro_batches)};
  setup.learning_rates = std::vector<double>(4, 1e-2);
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, odd_model.vocab_size, step, 5); };
  return setup;
}

RunSetup in_float(const Mesh& mesh, int micro_batches = 1) {
  RunSetup setup = setup_of(mesh, micro_batches);
  setup.dtype = DType::f32;
  setup.reference = false;
  return setup;
}

TEST(T5Parity, EveryMeshEqualsOneRank) {
  const Outcome one = run(setup_of({}));
  for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{1, 1, 3}, Mesh{2, 1, 1}, Mesh{1, 2, 2}, Mesh{2, 2, 3}})
    expect_close(one, run(setup_of(mesh)), tolerance, std::to_string(mesh.world_size()));
}

TEST(T5Parity, EveryMeshOfEightHasTheSameBits) {
  const Outcome expected = run(in_float({1, 1, 8}, 3));
  for (const Mesh& mesh : {Mesh{8, 1, 1}, Mesh{2, 1, 4}, Mesh{1, 2, 4}, Mesh{2, 2, 2}, Mesh{1, 8, 1}})
    expect_same_bits(expected, run(in_float(mesh, 3)));
}

TEST(T5Parity, AccumulationEqualsOneMicroBatch) {
  const Outcome one = run(setup_of({1, 1, 2}));
  for (const Accumulation accumulation : {Accumulation::reduce, Accumulation::reduce_scatter, Accumulation::no_sync}) {
    RunSetup setup = setup_of({1, 1, 2}, 3);
    setup.settings.schedule.accumulation = accumulation;
    expect_close(one, run(setup), tolerance);
  }
}

TEST(T5Parity, WhatIsKeptChangesNoBit) {
  RunSetup setup = in_float({2, 2, 2}, 3);
  const Outcome expected = run(setup);
  for (const Keep keep : {Keep::micro_batch, Keep::step}) {
    setup.settings.schedule.keep = keep;
    expect_same_bits(expected, run(setup));
  }
}

TEST(T5Parity, UnitsOfAnyKindChangeNothing) {
  using Policy = plan::Wrap::Policy;
  const Outcome expected = run(setup_of({1, 1, 2}));
  for (const plan::Wrap& wrap : {plan::Wrap{.policy = Policy::none}, plan::Wrap{.policy = Policy::blocks, .count = 2},
                                 plan::Wrap{.policy = Policy::size, .count = 900},
                                 plan::Wrap{.policy = Policy::classes, .names = {"SelfAttention", "DenseReluDense"}}}) {
    RunSetup setup = setup_of({1, 1, 2});
    setup.settings.schedule.wrap = wrap;
    expect_close(expected, run(setup), tolerance);
  }
}

TEST(T5Parity, LanesAndRanksMayBeLate) {
  RunSetup setup = in_float({1, 1, 4}, 2);
  setup.settings = settings_of(odd_model, seq, 16, {1, 1, 4}, 2);
  setup.batch = [](std::int64_t step) { return formula_batch(16, seq, odd_model.vocab_size, step, 5); };
  const Outcome expected = run(setup);
  for (const plan::Lane lane : {plan::Lane::compute, plan::Lane::gather, plan::Lane::reduce}) {
    setup.before_op = Delays(4, lane);
    expect_same_bits(expected, run(setup));
  }
}

TEST(T5Parity, RecomputationChangesNoBit) {
  using model::OpKind;
  for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{2, 2, 2}}) {
    RunSetup setup = in_float(mesh, 3);
    const Outcome expected = run(setup);
    for (const plan::Recompute& what :
         {plan::Recompute{.mode = Mode::full}, plan::Recompute{.mode = Mode::full, .every = 2},
          plan::Recompute{.mode = Mode::selective, .kinds = {OpKind::attention, OpKind::full_attention, OpKind::geglu}},
          plan::Recompute{.mode = Mode::selective, .kinds = {OpKind::linear, OpKind::add, OpKind::relative_bias}}}) {
      setup.settings.schedule.recompute = what;
      expect_same_bits(expected, run(setup));
    }
  }
}

TEST(T5Parity, HalvesFollowFloat) {
  const Outcome expected = run(in_float({1, 1, 2}));
  for (const DType type : {DType::bf16, DType::f16}) {
    RunSetup setup = in_float({1, 1, 2});
    setup.settings.schedule.precision.parameters = type;
    const Outcome outcome = run(setup);
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
      EXPECT_NEAR(outcome.losses[i], expected.losses[i], 0.02 * expected.losses[i]) << name_of(type);
  }
}

TEST(T5Parity, FrozenParametersStayAsTheyAre) {
  RunSetup setup = setup_of({1, 1, 2});
  setup.settings.schedule.wrap.frozen = {"encoder.*", "*.relative_attention_bias.*"};
  const Outcome after = run(setup);
  setup.learning_rates = {};
  const Outcome before = run(setup);
  for (const auto& [name, values] : before.weights) {
    const bool frozen = name.starts_with("encoder.") || name.find("relative") != std::string::npos;
    EXPECT_EQ(values == after.weights.at(name), frozen) << name;
  }
}

TEST(T5Parity, TheArenaIsWhatThePlanSays) {
  for (const bool recompute : {false, true}) {
    RunSetup setup = in_float({1, 1, 2}, 2);
    if (recompute) setup.settings.schedule.recompute.mode = Mode::full;
    expect_the_planned_arena(setup);
  }
}

}  // namespace
}  // namespace foreshard::parity
