// The gradient's norm, of every type, against a sum in long double over the whole gradient; and what clipping makes of
// it.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>
#include <set>

#include "local_run.hpp"

namespace foreshard::parity {
namespace {

const model::GptConfig odd_model{
    .layers = 2, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 11, .ffn_width = 23};
constexpr std::int64_t seq = 7, rows = 24, ignore_every = 5;
constexpr double tokens = 24 * 7 - 34;  // every fifth of 168 targets, from the first on, is ignored

RunSetup setup_of(const plan::Mesh& mesh, float power) {
  RunSetup setup{.settings = settings_of(odd_model, seq, rows, mesh)};
  setup.settings.schedule.norm_power = power;
  setup.settings.schedule.update = plan::OpKind::sgd;
  setup.optimizer.weight_decay = 0;
  setup.learning_rates = {1};
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, odd_model.vocab_size, step, ignore_every); };
  return setup;
}

double norm_of(const Tensors& gradient, double power) {
  long double sum = 0, largest = 0;
  for (const auto& [name, values] : gradient)
    for (const double value : values) {
      sum += std::pow(std::abs(static_cast<long double>(value)), static_cast<long double>(power));
      largest = std::max(largest, std::abs(static_cast<long double>(value)));
    }
  return static_cast<double>(std::isinf(power) ? largest : std::pow(sum, 1.0L / static_cast<long double>(power)));
}

Tensors initial_weights() {
  RunSetup setup = setup_of(no_shard(1), 2);
  setup.learning_rates = {};
  return run(setup).weights;
}

/// Largest difference between the weights and initial − scale · gradient, each element cut to ±cut.
double distance_from_step(const Outcome& outcome, double scale, double cut) {
  static const Tensors initial = initial_weights();
  double worst = 0;
  for (const auto& [name, gradient] : outcome.first_gradients)
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double expected = initial.at(name)[i] - std::clamp(scale * gradient[i], -cut, cut);
      worst = std::max(worst, std::abs(outcome.weights.at(name)[i] - expected));
    }
  return worst;
}

const plan::Mesh meshes[] = {no_shard(1),   full_shard(2), no_shard(2), full_shard(3), no_shard(3),
                             full_shard(4), no_shard(4),   {2, 1, 2},   {1, 2, 2}};

class Norms : public testing::TestWithParam<std::tuple<float, plan::Mesh>> {};

TEST_P(Norms, AreThoseOfTheWholeMeanGradient) {
  const auto [power, mesh] = GetParam();
  const Outcome outcome = run(setup_of(mesh, power));
  const double truth = norm_of(outcome.first_gradients, static_cast<double>(power)) / tokens;
  EXPECT_NEAR(outcome.grad_norms[0], truth, 1e-14 * truth);
}

TEST_P(Norms, ClipTheStepByTheirCoefficient) {
  const auto [power, mesh] = GetParam();
  RunSetup setup = setup_of(mesh, power);
  setup.optimizer.max_norm = 1e-2;
  const Outcome outcome = run(setup);
  ASSERT_GT(outcome.grad_norms[0], setup.optimizer.max_norm) << "else clipping would not show";
  const double coefficient = setup.optimizer.max_norm / (outcome.grad_norms[0] + 1e-6);
  EXPECT_LE(distance_from_step(outcome, coefficient / tokens, 1e300), 1e-14);
  setup.optimizer.max_norm = 1e9;
  EXPECT_LE(distance_from_step(run(setup), 1 / tokens, 1e300), 1e-14) << "a small norm does not stretch the step";
}

TEST_P(Norms, AreTheSameBitsOnEveryRank) {
  const auto [power, mesh] = GetParam();
  RunSetup setup = setup_of(mesh, power);
  setup.dtype = DType::f32;
  setup.reference = false;
  std::mutex mutex;
  std::multiset<double> norms;
  setup.after_step = [&](const StepEnd& end) {
    const std::lock_guard lock(mutex);
    norms.insert(end.result.grad_norm);
  };
  run(setup);
  EXPECT_EQ(norms.size(), static_cast<std::size_t>(mesh.world_size()));
  EXPECT_EQ(norms.count(*norms.begin()), norms.size());
}

INSTANTIATE_TEST_SUITE_P(All, Norms,
                         testing::Combine(testing::Values(1.0F, 2.0F, 3.0F, HUGE_VALF), testing::ValuesIn(meshes)));

class NormPower : public testing::TestWithParam<float> {};

TEST_P(NormPower, DoesNotDependOnHowShardsAreCutByABit) {
  for (const int world : {2, 4}) {
    RunSetup full = setup_of(full_shard(world), GetParam()), none = setup_of(no_shard(world), GetParam());
    for (RunSetup* setup : {&full, &none}) setup->dtype = DType::f32, setup->reference = false;
    EXPECT_EQ(run(full).grad_norms, run(none).grad_norms);
  }
}

INSTANTIATE_TEST_SUITE_P(All, NormPower, testing::Values(1.0F, 2.0F, 3.0F, HUGE_VALF));

TEST(ClipValue, CutsEachElementOfTheMeanGradient) {
  for (const plan::Mesh& mesh : {full_shard(3), no_shard(3)}) {
    RunSetup setup = setup_of(mesh, 2);
    setup.optimizer.max_norm = 0;
    setup.optimizer.clip_value = 1e-3;
    const Outcome outcome = run(setup);
    ASSERT_GT(norm_of(outcome.first_gradients, HUGE_VAL) / tokens, 1e-3) << "else clipping would not show";
    EXPECT_LE(distance_from_step(outcome, 1 / tokens, 1e-3), 1e-14);
  }
}

}  // namespace
}  // namespace foreshard::parity
