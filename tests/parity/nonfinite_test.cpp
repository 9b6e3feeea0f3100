// One value that is not finite, on one rank, in one micro-batch: all ranks skip the same step and say whose it was.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <limits>
#include <mutex>

#include "local_run.hpp"
#include "train/nonfinite.hpp"

namespace foreshard::parity {
namespace {

using plan::OpKind;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
constexpr std::int64_t seq = 5, rows = 24, bad_step = 2;
const model::GptConfig small_model{.layers = 2, .width = 12, .heads = 3, .vocab_size = 19, .max_seq_len = 6};

/// Whose step is spoiled: an element of the first input of rank's `count`-th op (from 0) of a kind and unit.
struct Spoiler {
  int rank = 0;
  OpKind kind = OpKind::cross_entropy;
  plan::UnitId unit = model::root_unit;
  int count = 0;
  std::int64_t element = 0;
  double value = nan;
};

void overwrite(train::TrainingRank& rank, const plan::Operand& operand, std::int64_t element, double value) {
  const plan::Buffer& buffer = rank.plan().buffers[operand.buffer.value];
  auto& arena = const_cast<engine::Arena&>(rank.engine().arena(plan::Space::device));
  auto* bytes = arena.at(buffer.offset_bytes, buffer.size_bytes) + operand.offset_bytes;
  if (operand.dtype == DType::f32) reinterpret_cast<float*>(bytes)[element] = static_cast<float>(value);
  if (operand.dtype == DType::f64) reinterpret_cast<double*>(bytes)[element] = value;
}

/// Carries a spoiler out in `bad_step`, and keeps what the ranks said.
class Spoiled {
 public:
  Spoiled(RunSetup setup, const Spoiler& spoiler) : spoiler_(spoiler) {
    ranks_.resize(static_cast<std::size_t>(setup.settings.mesh.world_size()));
    setup.before_step = [this](train::TrainingRank& rank, int index, std::int64_t step) {
      ranks_[static_cast<std::size_t>(index)] = &rank;
      if (index == spoiler_.rank) step_ = step, seen_ = 0;
    };
    setup.before_op = [this](int index, const plan::Op& op) { before(index, op); };
    setup.after_step = [this](const StepEnd& end) { after(end); };
    outcome = run(setup);
  }

  Outcome outcome;
  std::string explanation;                              ///< of rank 0
  std::vector<std::pair<std::int64_t, bool>> verdicts;  ///< of all ranks: step, finite

 private:
  void before(int index, const plan::Op& op) {
    if (index != spoiler_.rank || step_ != bad_step || op.kind != spoiler_.kind || op.unit != spoiler_.unit) return;
    if (seen_++ != spoiler_.count) return;
    train::TrainingRank& rank = *ranks_[static_cast<std::size_t>(index)];
    overwrite(rank, rank.plan().inputs(op)[0], spoiler_.element, spoiler_.value);
  }

  void after(const StepEnd& end) {
    std::string text;
    if (!end.result.finite) text = train::explain_nonfinite(end.communicator, end.rank, end.step, end.batch);
    const std::lock_guard lock(mutex_);
    verdicts.emplace_back(end.step, end.result.finite);
    if (!text.empty()) explanation = text;
  }

  Spoiler spoiler_;
  std::vector<train::TrainingRank*> ranks_;
  std::atomic<std::int64_t> step_ = 0;
  std::atomic<int> seen_ = 0;
  std::mutex mutex_;
};

RunSetup setup_of(const plan::Mesh& mesh, int micro_batches = 1, const model::GptConfig& model = small_model) {
  RunSetup setup{
      .settings = settings_of(model, seq, rows, mesh, micro_batches), .dtype = DType::f32, .reference = false};
  setup.learning_rates = {1e-2, 2e-2, 3e-2};
  setup.batch = [vocab = model.vocab_size](std::int64_t step) { return formula_batch(rows, seq, vocab, step); };
  return setup;
}

/// What is left if the bad step never was: two steps, with the data and the learning rates of the first and the third.
Outcome without_bad_step(RunSetup setup) {
  setup.learning_rates.erase(setup.learning_rates.begin() + bad_step - 1);
  setup.batch = [batch = setup.batch](std::int64_t step) { return batch(step < bad_step ? step : step + 1); };
  return run(setup);
}

/// All ranks skipped the bad step and no other, and nothing else of it remained.
void expect_skipped(const Spoiled& spoiled, const RunSetup& setup) {
  EXPECT_EQ(spoiled.verdicts.size(), setup.learning_rates.size() * setup.settings.mesh.world_size());
  for (const auto& [step, finite] : spoiled.verdicts) EXPECT_EQ(finite, step != bad_step) << "step " << step;
  EXPECT_EQ(spoiled.outcome.weights, without_bad_step(setup).weights);
}

class Verdict : public testing::TestWithParam<plan::Mesh> {};

TEST_P(Verdict, OnALossNamesRankMicroBatchAndToken) {
  const int world = GetParam().world_size();
  const RunSetup setup = setup_of(GetParam(), 2);
  for (int rank = 0; rank < world; ++rank) {
    const std::int64_t row = 7, vocab = small_model.vocab_size;
    const Spoiled spoiled(setup, {.rank = rank, .count = 1, .element = row * vocab + 3});
    expect_skipped(spoiled, setup);
    const std::int64_t of_rank = rows / world, first_row = (rank * of_rank + of_rank / 2) * seq;  // second half's
    const auto token = setup.batch(bad_step).tokens[static_cast<std::size_t>(first_row + row)];
    EXPECT_THAT(spoiled.explanation,
                HasSubstr(fmt::format("the loss of rank {} in micro-batch 1 (sequence 1, position 2, token {}) is not "
                                      "finite",
                                      rank, token)));
  }
}

/// A gradient overflows on one rank before it is reduced: all shards are fine but one, and its holder may be another.
TEST_P(Verdict, OnAGradientNamesTheElementOfTheParameter) {
  const int world = GetParam().world_size();
  for (const float power : {2.0F, HUGE_VALF}) {
    RunSetup setup = setup_of(GetParam());
    setup.settings.schedule.norm_power = power;
    const OpKind reduction = GetParam().shard_degree() > 1 ? OpKind::reduce_scatter : OpKind::all_reduce;
    for (int rank = 0; rank < world; ++rank) {
      const std::int64_t element = 19 * 12 + 5;  // behind the token table: row 0 of the position table
      const Spoiled spoiled(
          setup,
          {.rank = rank, .kind = world > 1 ? reduction : OpKind::grad_norm, .element = element, .value = infinity});
      expect_skipped(spoiled, setup);
      EXPECT_THAT(spoiled.explanation, AllOf(HasSubstr("the loss is finite on every rank"),
                                             HasSubstr("the gradient of wpe.weight at element 5 is inf (held by rank"),
                                             Not(HasSubstr("more parameter"))));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Verdict,
                         testing::Values(no_shard(1), full_shard(2), no_shard(2), full_shard(3), no_shard(3),
                                         full_shard(4), no_shard(4), plan::Mesh{2, 1, 2}));

TEST(VerdictEdges, RanksWithoutAnyElementSkipToo) {
  const model::GptConfig tiny{.layers = 2, .width = 1, .heads = 1, .vocab_size = 2, .max_seq_len = 7, .ffn_width = 1};
  const RunSetup setup = setup_of(full_shard(8), 1, tiny);
  for (const int rank : {0, 3, 7})
    expect_skipped(Spoiled(setup, {.rank = rank, .kind = OpKind::reduce_scatter, .unit = {1}, .element = 2}), setup);
}

TEST(VerdictEdges, EveryOptimizerKeepsItsMoments) {
  for (const OpKind update : {OpKind::adam, OpKind::sgd, OpKind::sgd_momentum, OpKind::lion}) {
    RunSetup setup = setup_of(full_shard(2));
    setup.settings.schedule.update = update;
    setup.optimizer.momentum = update == OpKind::sgd_momentum ? 0.9 : 0;
    expect_skipped(Spoiled(setup, {.rank = 1, .element = 3}), setup);
  }
}

TEST(VerdictEdges, TheParameterNearestToTheLossIsNamedOfMany) {
  const RunSetup setup = setup_of(full_shard(2));
  const Spoiled spoiled(setup, {.rank = 1, .element = 3});
  EXPECT_THAT(spoiled.explanation, AllOf(HasSubstr("the gradient of ln_f.bias at element 0 is nan (held by rank"),
                                         HasSubstr("more parameter(s) are affected")));
}

TEST(LossScale, OfPowersOfTwoChangesNoBit) {
  RunSetup plain = setup_of(full_shard(2), 2), scaled = plain;
  plain.learning_rates = scaled.learning_rates = std::vector<double>(6, 1e-2);
  scaled.optimizer.loss_scale = {.dynamic = true, .scale = 65536, .interval = 2};
  const Outcome expected = run(plain), outcome = run(scaled);
  EXPECT_EQ(outcome.losses, expected.losses);
  EXPECT_EQ(outcome.grad_norms, expected.grad_norms);
  EXPECT_EQ(outcome.weights, expected.weights);
}

TEST(LossScale, BacksOffUntilTheGradientFits) {
  RunSetup setup = setup_of(full_shard(3));
  setup.learning_rates = std::vector<double>(20, 1e-2);
  setup.optimizer.loss_scale = {.dynamic = true, .scale = 0x1p127};
  std::mutex mutex;
  std::vector<std::pair<bool, double>> of_rank[3];
  setup.after_step = [&](const StepEnd& end) {
    const std::lock_guard lock(mutex);
    of_rank[end.communicator.rank()].emplace_back(end.result.finite, end.rank.scaler().scale());
    const auto state = end.rank.update_state();
    EXPECT_EQ(state.skipped_in_a_row, end.result.finite ? 0 : end.step) << "the first ones are skipped";
  };
  run(setup);
  EXPECT_EQ(of_rank[1], of_rank[0]);
  EXPECT_EQ(of_rank[2], of_rank[0]);
  EXPECT_FALSE(of_rank[0].front().first);
  EXPECT_TRUE(of_rank[0].back().first);
  double scale = 0x1p127;
  for (const auto& [finite, after] : of_rank[0]) EXPECT_EQ(after, scale = finite ? scale : scale / 2);
}

}  // namespace
}  // namespace foreshard::parity
