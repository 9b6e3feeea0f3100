// What lies in host memory decides when and where things happen, never what is computed.
#include <gtest/gtest.h>

#include "delays.hpp"
#include "local_run.hpp"

namespace foreshard::parity {
namespace {

using plan::Accumulation;
using plan::Keep;
using plan::Mesh;
using plan::Offload;

const model::GptConfig odd_model{
    .layers = 3, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 11, .ffn_width = 23};
constexpr std::int64_t seq = 7, rows = 12;

RunSetup setup_of(const Mesh& mesh, int micro_batches) {
  RunSetup setup{
      .settings = settings_of(odd_model, seq, rows, mesh, micro_batches), .dtype = DType::f32, .reference = false};
  setup.learning_rates = {1e-2, 1e-2, 1e-2};
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, odd_model.vocab_size, step, 5); };
  return setup;
}

std::vector<Offload> combinations() {
  std::vector<Offload> all;
  for (int bits = 1; bits < 8; ++bits) all.push_back({(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
  return all;
}

std::string text_of(const Offload& offload) {
  return std::string(offload.parameters ? "parameters " : "") + (offload.gradients ? "gradients " : "") +
         (offload.optimizer ? "optimizer " : "");
}

void expect_same_bits(const Outcome& a, const Outcome& b, const std::string& what) {
  EXPECT_EQ(a.losses, b.losses) << what;
  EXPECT_EQ(a.grad_norms, b.grad_norms) << what;
  EXPECT_TRUE(a.first_gradients == b.first_gradients) << what << ": first gradients differ";
  EXPECT_TRUE(a.weights == b.weights) << what << ": weights differ";
}

void expect_same_bits_with_all_combinations(RunSetup setup) {
  const Outcome expected = run(setup);
  for (const Offload& offload : combinations()) {
    setup.settings.schedule.offload = offload;
    expect_same_bits(expected, run(setup), text_of(offload));
  }
}

class OffloadStrategies : public testing::TestWithParam<std::tuple<Mesh, Keep, Accumulation>> {};

TEST_P(OffloadStrategies, KeepEveryBit) {
  const auto& [mesh, keep, accumulation] = GetParam();
  RunSetup setup = setup_of(mesh, 3);
  setup.settings.schedule.keep = keep;
  setup.settings.schedule.accumulation = accumulation;
  expect_same_bits_with_all_combinations(setup);
}

INSTANTIATE_TEST_SUITE_P(All, OffloadStrategies,
                         testing::Combine(testing::Values(Mesh{1, 1, 2}, Mesh{2, 1, 1}, Mesh{2, 1, 2}, Mesh{1, 2, 2}),
                                          testing::Values(Keep::visit, Keep::micro_batch, Keep::step),
                                          testing::Values(Accumulation::reduce, Accumulation::reduce_scatter,
                                                          Accumulation::no_sync)));

TEST(Offload, OfOneRankKeepsEveryBitOfAStep) { expect_same_bits_with_all_combinations(setup_of({}, 1)); }

/// The sum of a micro-batch's gradient is complete before it is added to the others', as on several ranks.
TEST(Offload, OfOneRankAddsUpMicroBatches) {
  RunSetup setup = setup_of({}, 3);
  setup.dtype = DType::f64;
  setup.reference = true;
  const Outcome expected = run(setup);
  for (const Offload& offload : combinations()) {
    setup.settings.schedule.offload = offload;
    const Outcome outcome = run(setup);
    for (std::size_t i = 0; i < expected.losses.size(); ++i) {
      EXPECT_NEAR(outcome.losses[i], expected.losses[i], 1e-12 * expected.losses[i]) << text_of(offload);
      EXPECT_NEAR(outcome.grad_norms[i], expected.grad_norms[i], 1e-12 * expected.grad_norms[i]) << text_of(offload);
    }
    EXPECT_LE(distance(outcome.first_gradients, expected.first_gradients), 1e-12) << text_of(offload);
    EXPECT_LE(distance(outcome.weights, expected.weights), 1e-11) << text_of(offload);
  }
}

TEST(Offload, KeepsEveryBitOfHalvesAndRecomputation) {
  for (const Mesh& mesh : {Mesh{}, Mesh{1, 1, 2}, Mesh{2, 2, 1}}) {
    RunSetup setup = setup_of(mesh, mesh.world_size() == 1 ? 1 : 3);
    setup.settings.schedule.precision = {.parameters = DType::bf16, .reduction = DType::bf16};
    setup.settings.schedule.recompute.mode = plan::Recompute::Mode::full;
    expect_same_bits_with_all_combinations(setup);
  }
}

TEST(Offload, KeepsEveryBitOfEveryOptimizerWhenClipped) {
  for (const plan::OpKind update :
       {plan::OpKind::adam, plan::OpKind::sgd, plan::OpKind::sgd_momentum, plan::OpKind::lion}) {
    RunSetup setup = setup_of({1, 1, 2}, 2);
    setup.settings.schedule.update = update;
    setup.optimizer.max_norm = 0.01;
    setup.optimizer.momentum = 0.9;
    expect_same_bits_with_all_combinations(setup);
  }
}

class DelayedOffload : public testing::TestWithParam<std::tuple<Mesh, int>> {};

TEST_P(DelayedOffload, KeepsEveryBit) {
  const auto& [mesh, micro_batches] = GetParam();
  RunSetup setup = setup_of(mesh, micro_batches);
  const Outcome expected = run(setup);
  for (const Offload& offload : combinations())
    for (const plan::Lane lane : {plan::Lane::copy, plan::Lane::compute, plan::Lane::gather, plan::Lane::reduce}) {
      setup.settings.schedule.offload = offload;
      setup.before_op = Delays(static_cast<unsigned>(mesh.world_size()), lane);
      expect_same_bits(expected, run(setup), text_of(offload) + "slow " + std::string(plan::name_of(lane)));
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, DelayedOffload,
                         testing::Values(std::tuple{Mesh{}, 1}, std::tuple{Mesh{1, 1, 2}, 1},
                                         std::tuple{Mesh{1, 1, 4}, 2}, std::tuple{Mesh{2, 1, 1}, 3},
                                         std::tuple{Mesh{2, 1, 2}, 3}, std::tuple{Mesh{1, 2, 2}, 2}));

}  // namespace
}  // namespace foreshard::parity
