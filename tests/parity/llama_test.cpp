// Models of Llama's family: no mesh, strategy, schedule or recomputation changes what is computed, and memory is what
// the plan says.
#include <gtest/gtest.h>

#include "delays.hpp"
#include "expect.hpp"

namespace foreshard::parity {
namespace {

using plan::Accumulation;
using plan::BackwardPrefetch;
using plan::Keep;
using plan::Mesh;
using Mode = plan::Recompute::Mode;

// Nothing divides: heads of 6 numbers in a width of 15, three of queries for one of keys.
const model::LlamaConfig odd_model{.layers = 3,
                                   .width = 15,
                                   .heads = 3,
                                   .vocab_size = 37,
                                   .max_seq_len = 11,
                                   .ffn_width = 23,
                                   .kv_heads = 1,
                                   .head_width = 6,
                                   .qkv_bias = true};
constexpr std::int64_t seq = 7, rows = 24;
constexpr double tolerance = 1e-11;  // Adam amplifies the rounding of gradients that are nothing but rounding

RunSetup setup_of(const Mesh& mesh, int micro_batches = 1) {
  RunSetup setup{.settings = settings_of(odd_model, seq, rows, mesh, micro_batches)};
  setup.learning_rates = std::vector<double>(5, 1e-2);
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, odd_model.vocab_size, step, 5); };
  return setup;
}

RunSetup in_float(const Mesh& mesh, int micro_batches = 1) {
  RunSetup setup = setup_of(mesh, micro_batches);
  setup.dtype = DType::f32;
  setup.reference = false;
  return setup;
}

const Mesh meshes_of_eight[] = {{1, 1, 8}, {8, 1, 1}, {2, 1, 4}, {1, 2, 4}, {2, 2, 2}, {1, 8, 1}};

TEST(LlamaParity, EveryMeshEqualsOneRank) {
  const Outcome one = run(setup_of({}));
  for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{1, 1, 3}, Mesh{2, 1, 1}, Mesh{1, 2, 2}, Mesh{2, 2, 3}})
    expect_close(one, run(setup_of(mesh)), tolerance, std::to_string(mesh.world_size()));
}

TEST(LlamaParity, EveryMeshOfEightHasTheSameBits) {
  const Outcome expected = run(in_float(meshes_of_eight[0], 3));
  for (const Mesh& mesh : meshes_of_eight) expect_same_bits(expected, run(in_float(mesh, 3)));
}

TEST(LlamaParity, WhatIsKeptChangesNoBit) {
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

TEST(LlamaParity, PrefetchAndLimitsChangeNoBit) {
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

TEST(LlamaParity, LanesAndRanksMayBeLate) {
  RunSetup setup = in_float({1, 1, 4}, 2);
  const Outcome expected = run(setup);
  for (const plan::Lane lane : {plan::Lane::compute, plan::Lane::gather, plan::Lane::reduce}) {
    setup.before_op = Delays(4, lane);
    expect_same_bits(expected, run(setup));
  }
}

TEST(LlamaParity, RecomputationChangesNoBit) {
  using model::OpKind;
  for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{2, 2, 2}}) {
    RunSetup setup = in_float(mesh, 2);
    setup.settings = settings_of(odd_model, seq, 16, mesh, 2);
    setup.batch = [](std::int64_t step) { return formula_batch(16, seq, odd_model.vocab_size, step, 5); };
    const Outcome expected = run(setup);
    for (const plan::Recompute& what :
         {plan::Recompute{.mode = Mode::full}, plan::Recompute{.mode = Mode::full, .every = 2},
          plan::Recompute{.mode = Mode::selective},
          plan::Recompute{.mode = Mode::selective, .kinds = {OpKind::rms_norm, OpKind::rotary, OpKind::swiglu}},
          plan::Recompute{.mode = Mode::selective, .kinds = {OpKind::linear, OpKind::add, OpKind::swiglu}}}) {
      setup.settings.schedule.recompute = what;
      expect_same_bits(expected, run(setup));
    }
  }
}

TEST(LlamaParity, HalvesFollowFloat) {
  const Outcome expected = run(in_float({1, 1, 2}));
  for (const DType type : {DType::bf16, DType::f16}) {
    RunSetup setup = in_float({1, 1, 2});
    setup.settings.schedule.precision.parameters = type;
    const Outcome outcome = run(setup);
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
      EXPECT_NEAR(outcome.losses[i], expected.losses[i], 0.01 * expected.losses[i]) << name_of(type);
  }
}

TEST(LlamaParity, FrozenParametersStayAsTheyAre) {
  RunSetup setup = setup_of({1, 1, 2});
  setup.settings.schedule.wrap.frozen = {"layers.0.*", "*.k_proj.*", "embed_tokens.weight", "norm.weight"};
  const Outcome after = run(setup);
  setup.learning_rates = {};
  const Outcome before = run(setup);
  for (const auto& [name, values] : before.weights) {
    const bool frozen = name.starts_with("layers.0.") || name.find("k_proj") != std::string::npos ||
                        name == "embed_tokens.weight" || name == "norm.weight";
    EXPECT_EQ(values == after.weights.at(name), frozen) << name;
  }
}

TEST(LlamaParity, TheArenaIsWhatThePlanSays) {
  for (const bool recompute : {false, true}) {
    RunSetup setup = in_float({1, 1, 2}, 2);
    if (recompute) setup.settings.schedule.recompute.mode = Mode::full;
    expect_the_planned_arena(setup);
  }
}

}  // namespace
}  // namespace foreshard::parity
