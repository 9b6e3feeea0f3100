// Prefetch, limits and timing decide when things happen, never what is computed.
#include <gtest/gtest.h>

#include "delays.hpp"
#include "local_run.hpp"

namespace foreshard::parity {
namespace {

using plan::BackwardPrefetch;

const model::GptConfig model_of_four{.layers = 4, .width = 12, .heads = 3, .vocab_size = 19, .max_seq_len = 6};
constexpr std::int64_t seq = 5, rows = 8;

RunSetup setup_of(int world, int micro_batches) {
  RunSetup setup{.settings = settings_of(model_of_four, seq, rows, full_shard(world), micro_batches),
                 .dtype = DType::f32,
                 .reference = false};
  setup.learning_rates = {1e-2, 1e-2, 1e-2};
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, model_of_four.vocab_size, step); };
  return setup;
}

class Limits : public testing::TestWithParam<std::tuple<BackwardPrefetch, int>> {};

TEST_P(Limits, NoCombinationHangsOrChangesABit) {
  RunSetup setup = setup_of(2, 2);
  const Outcome expected = run(setup);
  const auto [prefetch, depth] = GetParam();
  for (const int gather_limit : {1, 2, 3, 4, plan::unlimited})
    for (const int reduce_limit : {1, 2, 3, plan::unlimited}) {
      setup.settings.schedule = {.prefetch = prefetch,
                                 .prefetch_depth = std::max(1, depth),
                                 .forward_prefetch = depth,
                                 .gather_limit = gather_limit,
                                 .reduce_limit = reduce_limit,
                                 .micro_batches = 2};
      const Outcome outcome = run(setup);
      EXPECT_EQ(outcome.losses, expected.losses) << "limits " << gather_limit << ", " << reduce_limit;
      EXPECT_EQ(outcome.weights, expected.weights) << "limits " << gather_limit << ", " << reduce_limit;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Limits,
                         testing::Combine(testing::Values(BackwardPrefetch::none, BackwardPrefetch::post,
                                                          BackwardPrefetch::pre),
                                          testing::Range(0, 4)));

class Delayed : public testing::TestWithParam<std::tuple<int, int>> {};

TEST_P(Delayed, LanesAndRanksKeepEveryBit) {
  const auto [world, micro_batches] = GetParam();
  RunSetup setup = setup_of(world, micro_batches);
  const Outcome expected = run(setup);
  for (const plan::Lane lane : {plan::Lane::compute, plan::Lane::gather, plan::Lane::reduce}) {
    setup.before_op = Delays(static_cast<unsigned>(world), lane);
    const Outcome outcome = run(setup);
    EXPECT_EQ(outcome.losses, expected.losses) << "slow " << plan::name_of(lane);
    EXPECT_EQ(outcome.weights, expected.weights) << "slow " << plan::name_of(lane);
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Delayed, testing::Combine(testing::Values(1, 2, 4), testing::Values(1, 2)));

TEST(Counters, CountWhatThePlanSays) {
  for (const int world : {2, 4}) {
    RunSetup setup = setup_of(world, 1);
    const Outcome outcome = run(setup);
    const std::uint64_t steps = setup.learning_rates.size(), units = 5;
    EXPECT_EQ(outcome.counters.all_gather.calls, steps * (2 * units - 1));
    EXPECT_EQ(outcome.counters.reduce_scatter.calls, steps * units);
    EXPECT_EQ(outcome.counters.all_reduce.calls, steps * 2) << "the norm and the loss";
    EXPECT_EQ(outcome.counters.all_gather.received_bytes * static_cast<std::uint64_t>(world),
              outcome.counters.all_gather.payload_bytes * static_cast<std::uint64_t>(world - 1));
    EXPECT_EQ(outcome.counters.reduce_scatter.received_bytes * static_cast<std::uint64_t>(world),
              outcome.counters.reduce_scatter.payload_bytes * static_cast<std::uint64_t>(world - 1));
  }
}

TEST(Failure, OfOneOpEndsAllRanks) {
  RunSetup setup = setup_of(4, 1);
  setup.before_op = [](int rank, const plan::Op& op) {
    if (rank == 2 && op.kind == plan::OpKind::gelu_backward) throw std::runtime_error("injected");
  };
  EXPECT_THROW(run(setup), std::runtime_error);
}

}  // namespace
}  // namespace foreshard::parity
