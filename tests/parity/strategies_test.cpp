// Sharded training against one rank that has the whole batch: reference kernels in double, ten steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

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

TEST(StrategiesEdges, SevenRanks) {
  const auto on = [](const plan::Mesh& mesh) {
    RunSetup setup{.settings = settings_of(odd_model, seq, 21, mesh)};
    setup.batch = [](std::int64_t step) { return formula_batch(21, seq, odd_model.vocab_size, step, 5); };
    return run(setup);
  };
  const Outcome one = on(no_shard(1));
  expect_close(one, on(full_shard(7)), 1e-12);
  expect_close(one, on(no_shard(7)), 1e-12);
}

/// A sequence of 11 valid targets and one of 101: the loss is their mean over tokens, not the mean of their means,
/// however they are dealt.
TEST(StrategiesEdges, SequencesOfUnequalLengthCountByToken) {
  constexpr std::int64_t longest = 103;
  const model::GptConfig model{.layers = 1, .width = 6, .heads = 2, .vocab_size = 19, .max_seq_len = longest};
  const auto with = [&](const plan::Mesh& mesh, int micro_batches, std::int64_t first, std::int64_t second) {
    RunSetup setup{.settings = settings_of(model, longest, 2, mesh, micro_batches)};
    setup.learning_rates = {1e-2, 1e-2};
    setup.batch = [=](std::int64_t step) {
      train::Batch batch = formula_batch(2, longest, 19, step);
      std::fill(batch.targets.begin() + first, batch.targets.begin() + longest, -1);
      std::fill(batch.targets.begin() + longest + second, batch.targets.end(), -1);
      return batch;
    };
    return run(setup);
  };
  const Outcome one = with(no_shard(1), 1, 11, 101);
  const double of_first = with(no_shard(1), 1, 11, 0).losses[0], of_second = with(no_shard(1), 1, 0, 101).losses[0];
  EXPECT_NEAR(one.losses[0], (11 * of_first + 101 * of_second) / 112, 1e-13);
  EXPECT_GT(std::abs(one.losses[0] - (of_first + of_second) / 2), 1e-4) << "the two means must differ";
  expect_close(one, with(no_shard(1), 2, 11, 101), 1e-12, "two micro-batches");
  expect_close(one, with(full_shard(2), 1, 11, 101), 1e-12, "two ranks");
  expect_close(one, with(no_shard(2), 1, 11, 101), 1e-12, "two replicas");
  const Outcome alone = with(no_shard(1), 1, 11, 0);
  expect_close(alone, with(no_shard(1), 2, 11, 0), 1e-12, "a micro-batch without targets");
  expect_close(alone, with(full_shard(2), 1, 11, 0), 1e-12, "a rank without targets");
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
