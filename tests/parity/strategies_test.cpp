// Sharded training against one rank that has the whole batch: reference kernels in double, ten steps.
#include <gtest/gtest.h>

#include "expect.hpp"

namespace foreshard::parity {
namespace {

// Prime and odd extents: nothing divides.
const model::GptConfig odd_model{
    .layers = 2, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 11, .ffn_width = 23};
constexpr std::int64_t seq = 7, rows = 120;  // 120 divides by all rank counts below

RunSetup setup_of(const plan::Mesh& mesh, int micro_batches = 1, const model::GptConfig& model = odd_model) {
  RunSetup setup{.settings = settings_of(model, seq, rows, mesh, micro_batches)};
  setup.batch = [vocab = model.vocab_size](std::int64_t step) { return formula_batch(rows, seq, vocab, step, 5); };
  return setup;
}

const Outcome& one_rank() {
  static const Outcome outcome = run(setup_of(no_shard(1)));
  return outcome;
}

class Strategies : public testing::TestWithParam<std::tuple<int, bool>> {};

TEST_P(Strategies, EqualOneRank) {
  const auto [world, sharded] = GetParam();
  expect_close(one_rank(), run(setup_of(sharded ? full_shard(world) : no_shard(world))), 1e-12);
}

TEST_P(Strategies, AccumulateMicroBatchesToOneRanksStep) {
  const auto [world, sharded] = GetParam();
  expect_close(one_rank(), run(setup_of(sharded ? full_shard(world) : no_shard(world), world == 3 ? 4 : 3)), 1e-12);
}

INSTANTIATE_TEST_SUITE_P(All, Strategies, testing::Combine(testing::Values(1, 2, 3, 4, 5, 8), testing::Bool()));

TEST(StrategiesEdges, TheLossOfARepeatedBatchFalls) {
  RunSetup setup = setup_of(full_shard(2));
  setup.batch = [](std::int64_t) { return formula_batch(rows, seq, 37, 1); };
  const Outcome outcome = run(setup);
  EXPECT_LT(outcome.losses.back(), outcome.losses.front() - 0.1);
}

class PowerOfTwo : public testing::TestWithParam<int> {};

TEST_P(PowerOfTwo, StrategiesAgreeToTheBitInDouble) {
  expect_same_bits(run(setup_of(full_shard(GetParam()))), run(setup_of(no_shard(GetParam()))));
}

TEST_P(PowerOfTwo, StrategiesAgreeToTheBitInFloatOnCpuKernels) {
  RunSetup full = setup_of(full_shard(GetParam()), 3), none = setup_of(no_shard(GetParam()), 3);
  for (RunSetup* setup : {&full, &none}) setup->dtype = DType::f32, setup->reference = false;
  expect_same_bits(run(full), run(none));
}

INSTANTIATE_TEST_SUITE_P(Ranks, PowerOfTwo, testing::Values(2, 4, 8));

TEST(StrategiesEdges, UnitsSmallerThanTheWorld) {
  const model::GptConfig model{.layers = 2, .width = 1, .heads = 1, .vocab_size = 2, .max_seq_len = 7, .ffn_width = 1};
  const Outcome one = run(setup_of(no_shard(1), 1, model));
  for (const int world : {3, 8}) expect_close(one, run(setup_of(full_shard(world), 1, model)), 1e-11);
}

TEST(StrategiesEdges, UntiedHeadAndDropout) {
  model::GptConfig model = odd_model;
  model.tied_head = false;
  model.dropout = 0.2;
  const Outcome one = run(setup_of(no_shard(1), 1, model));
  for (const int world : {2, 5}) expect_close(one, run(setup_of(full_shard(world), 1, model)), 1e-12);
}

TEST(StrategiesEdges, AnAllIgnoredBatchChangesNothingButDecay) {
  RunSetup setup = setup_of(full_shard(2));
  setup.learning_rates = {1e-2};
  setup.optimizer.weight_decay = 0;
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, 37, step, 1); };
  const Outcome after = run(setup);
  EXPECT_EQ(after.grad_norms, std::vector{0.0});
  setup.learning_rates = {};
  EXPECT_EQ(after.weights, run(setup).weights);
}

}  // namespace
}  // namespace foreshard::parity
