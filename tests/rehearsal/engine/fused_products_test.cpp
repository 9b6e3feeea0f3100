// Pairs of ops that cuBLASLt makes in one pass: which they are, and that steps are the same with them.
#include "engine/cuda/fused_products.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/cuda/product_algorithms.hpp"
#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

using engine::cuda::fused_pairs;
using engine::cuda::FusedPair;
using kernels::cuda::Fused;

const model::GptConfig small{.layers = 2, .width = 16, .heads = 2, .vocab_size = 37, .max_seq_len = 8};

RunSetup setup_of(const plan::Mesh& mesh, bool mixed, int micro_batches = 1) {
  RunSetup setup{.settings = settings_of(small, 8, 12, mesh, micro_batches), .dtype = DType::f32, .reference = false};
  setup.learning_rates = {1e-2, 1e-2};
  setup.batch = [](std::int64_t step) { return formula_batch(12, 8, small.vocab_size, step, 5); };
  if (mixed) setup.settings.schedule.precision = {.parameters = DType::bf16, .reduction = DType::f32};
  return setup;
}

plan::Plan plan_of(const RunSetup& setup) {
  const auto& s = setup.settings;
  return plan::build_plan(model::build(s.model, s.batch), s.mesh, s.schedule);
}

/// The library's first algorithm for each product; fused ones only if asked for.
engine::KernelChoices first_algorithms(const plan::Plan& plan, bool fused) {
  const auto kernels = kernels::cuda::make({});
  engine::KernelChoices choices;
  for (const engine::cuda::Product& product : engine::cuda::products_of(plan))
    if (fused || product.types.fused == Fused::nothing)
      choices.emplace(engine::cuda::name_of(product),
                      engine::cuda::text_of(kernels->candidates(product.matmul, product.types).front()));
  return choices;
}

Outcome run_with(RunSetup setup, bool fused, bool graphs = true) {
  setup.before_step = [fused](train::TrainingRank& rank, int, std::int64_t step) {
    if (step == 1) rank.engine().use_kernels(first_algorithms(rank.plan(), fused), rank.plan());
  };
  return run_rehearsed(setup, {.graphs = graphs});
}

std::map<Fused, int> counts(const plan::Plan& plan) {
  std::map<Fused, int> count;
  for (const FusedPair& pair : fused_pairs(plan)) ++count[pair.product.types.fused];
  return count;
}

TEST(FusedPairs, AreThoseOfEveryBlock) {
  const auto of = [](int micro_batches, plan::Accumulation accumulation) {
    RunSetup setup = setup_of(full_shard(2), false, micro_batches);
    setup.settings.schedule.accumulation = accumulation;
    return counts(plan_of(setup));
  };
  const auto one = of(1, plan::Accumulation::reduce);
  EXPECT_EQ(one.at(Fused::gelu), 2);
  EXPECT_EQ(one.at(Fused::gelu_backward), 2);
  EXPECT_EQ(one.at(Fused::bias_grad), 8) << "four linears of a block have a bias";
  EXPECT_EQ(of(2, plan::Accumulation::no_sync).at(Fused::bias_grad), 8) << "the last micro-batch adds to the first's";
}

TEST(FusedPairs, AreOfTheTanhFormAlone) {
  plan::Plan plan = plan_of(setup_of(full_shard(1), false));
  for (plan::Op& op : plan.ops)
    if (op.kind == plan::OpKind::gelu) op.kind = plan::OpKind::gelu_exact;
  EXPECT_FALSE(counts(plan).contains(Fused::gelu));
}

/// Of every pair that there is, what makes it none.
class Broken : public testing::Test {
 protected:
  const plan::Plan whole = plan_of(setup_of(full_shard(2), false));

  template <class Change>
  void expect_none(Fused fused, const char* why, Change change) {
    for (const FusedPair& pair : fused_pairs(whole)) {
      if (pair.product.types.fused != fused) continue;
      plan::Plan plan = whole;
      const auto same = [&](const plan::Op* op) -> plan::Op& {
        return plan.ops[static_cast<std::size_t>(op - whole.ops.data())];
      };
      change(plan, same(pair.op), same(pair.next));
      EXPECT_EQ(counts(plan)[fused], counts(whole)[fused] - 1) << why;
    }
  }
};

TEST_F(Broken, WhereTheSecondWaits) {
  for (const Fused fused : {Fused::gelu, Fused::gelu_backward, Fused::bias_grad})
    expect_none(fused, "another lane may still write to its result",
                [](plan::Plan&, plan::Op&, plan::Op& next) { next.wait_count = 1; });
}

TEST_F(Broken, WhereTheResultTakesThePlaceOfWhatIsRead) {
  expect_none(Fused::gelu, "the first reads while the second writes",
              [](plan::Plan& plan, plan::Op& op, plan::Op& next) {
                plan.buffers[plan.outputs(next)[0].buffer.value].offset_bytes =
                    plan.buffers[plan.inputs(op)[0].buffer.value].offset_bytes;
              });
}

TEST_F(Broken, WhereTheGradientBetweenIsReadAgain) {
  expect_none(Fused::gelu_backward, "not in place", [](plan::Plan& plan, plan::Op&, plan::Op& next) {
    plan.operands[next.first_operand + next.input_count].buffer = plan.inputs(next)[1].buffer;
  });
}

TEST_F(Broken, WhereOneAddsToWhatWasThere) {
  expect_none(Fused::bias_grad, "the epilogue does not",
              [](plan::Plan&, plan::Op&, plan::Op& next) { next.accumulate = true; });
}

TEST_F(Broken, WhereAddressesAreOdd) {
  for (const Fused fused : {Fused::gelu, Fused::bias_grad})
    expect_none(fused, "a bias between two others", [fused](plan::Plan& plan, plan::Op& op, plan::Op& next) {
      plan.operands[fused == Fused::gelu ? op.first_operand + 2U : next.first_operand + next.input_count]
          .offset_bytes += 4;
    });
}

class FusedSteps : public testing::TestWithParam<int> {};

TEST_P(FusedSteps, EqualThoseOpByOpButForRounding) {
  for (const bool mixed : {false, true})
    for (const int micro_batches : {1, 2}) {
      const RunSetup setup = setup_of(full_shard(GetParam()), mixed, micro_batches);
      const Outcome apart = run_with(setup, false), fused = run_with(setup, true);
      for (std::size_t i = 0; i < apart.losses.size(); ++i)
        EXPECT_NEAR(fused.losses[i], apart.losses[i], (mixed ? 4e-3 : 1e-6) * apart.losses[i]);
      EXPECT_FALSE(apart.first_gradients == fused.first_gradients) << "nothing was fused";
      EXPECT_LE(distance(apart.first_gradients, fused.first_gradients), mixed ? 5e-2 : 1e-5);
      EXPECT_THAT(rehearsal::reports(), testing::IsEmpty());
    }
}

TEST_P(FusedSteps, AreTheSameAsGraphsAndTraced) {
  const RunSetup setup = setup_of(full_shard(GetParam()), true, 2);
  RunSetup traced = setup;
  trace::Recorder recorder;
  traced.recorder = &recorder;
  const Outcome graphs = run_with(setup, true), ops = run_with(setup, true, false), seen = run_with(traced, true);
  EXPECT_TRUE(graphs.weights == ops.weights);
  EXPECT_TRUE(graphs.weights == seen.weights);
}

INSTANTIATE_TEST_SUITE_P(Ranks, FusedSteps, testing::Values(1, 2, 4));

TEST(FusedProducts, AreChosenAsMeasured) {
  RunSetup setup = setup_of(full_shard(1), true);
  std::set<std::string> products;
  for (const engine::cuda::Product& product : engine::cuda::products_of(plan_of(setup)))
    products.insert(name_of(product));
  setup.before_step = [&](train::TrainingRank& rank, int, std::int64_t) {
    const engine::KernelChoices choices = rank.engine().measure_kernels(rank.plan());
    int plain = 0;
    for (const auto& [name, choice] : choices) {
      if (name == "device" || name.starts_with("attention")) continue;
      EXPECT_TRUE(products.contains(name)) << name;
      plain += !name.ends_with("gelu") && !name.ends_with("backward") && !name.ends_with("bias_grad");
    }
    EXPECT_GE(plain, 10);
    rank.engine().use_kernels(choices, rank.plan());
  };
  run_rehearsed(setup);
  EXPECT_THAT(rehearsal::reports(), testing::IsEmpty());
}

}  // namespace
}  // namespace foreshard::parity
