// Vision transformers: no mesh, schedule or recomputation changes what is computed of images.
#include <gtest/gtest.h>

#include "expect.hpp"

namespace foreshard::parity {
namespace {

using plan::Mesh;
using Mode = plan::Recompute::Mode;

const model::VitConfig odd_model{
    .layers = 3, .width = 15, .heads = 3, .ffn_width = 23, .patches = 6, .patch_values = 7, .classes = 5};
constexpr std::int64_t rows = 24;
constexpr double tolerance = 1e-11;

train::Batch images(std::int64_t step) {
  train::Batch batch;
  for (std::int64_t n = 0; n < rows; ++n) {
    batch.targets.push_back(n % 7 == 3 ? -1 : static_cast<std::int32_t>((n * n + step) % odd_model.classes));
    for (std::int64_t i = 0; i < odd_model.patches * odd_model.patch_values; ++i)
      batch.images.push_back(static_cast<float>((5 * i * i + 11 * n + 3 * step) % 64) / 32.0F - 1);
  }
  return batch;
}

RunSetup setup_of(const Mesh& mesh, int micro_batches = 1) {
  RunSetup setup{.settings = settings_of(odd_model, odd_model.tokens(), rows, mesh, micro_batches)};
  setup.learning_rates = std::vector<double>(4, 1e-2);
  setup.batch = images;
  return setup;
}

RunSetup in_float(const Mesh& mesh, int micro_batches = 1) {
  RunSetup setup = setup_of(mesh, micro_batches);
  setup.dtype = DType::f32;
  setup.reference = false;
  return setup;
}

/// A bias of the keys changes no loss: its gradient is rounding noise, by which Adam moves it.
Outcome run_without_noise(const RunSetup& setup) {
  Outcome outcome = run(setup);
  for (Tensors* tensors : {&outcome.first_gradients, &outcome.weights})
    std::erase_if(*tensors, [](const auto& tensor) { return tensor.first.ends_with("k_proj.bias"); });
  return outcome;
}

TEST(VitParity, EveryMeshEqualsOneRank) {
  const Outcome one = run_without_noise(setup_of({}));
  for (const Mesh& mesh : {Mesh{1, 1, 2}, Mesh{1, 1, 3}, Mesh{2, 1, 1}, Mesh{1, 2, 2}, Mesh{2, 2, 3}})
    expect_close(one, run_without_noise(setup_of(mesh)), tolerance, std::to_string(mesh.world_size()));
}

TEST(VitParity, EveryMeshOfEightHasTheSameBits) {
  const Outcome expected = run(in_float({1, 1, 8}, 3));
  for (const Mesh& mesh : {Mesh{8, 1, 1}, Mesh{2, 1, 4}, Mesh{2, 2, 2}})
    expect_same_bits(expected, run(in_float(mesh, 3)));
}

TEST(VitParity, AccumulationEqualsOneMicroBatch) {
  expect_close(run_without_noise(setup_of({1, 1, 2})), run_without_noise(setup_of({1, 1, 2}, 4)), tolerance);
}

TEST(VitParity, UnitsOfAnyKindChangeNothing) {
  using Policy = plan::Wrap::Policy;
  const Outcome expected = run_without_noise(setup_of({1, 1, 2}));
  for (const plan::Wrap& wrap : {plan::Wrap{.policy = Policy::none}, plan::Wrap{.policy = Policy::size, .count = 900},
                                 plan::Wrap{.policy = Policy::classes, .names = {"attention", "mlp"}}}) {
    RunSetup setup = setup_of({1, 1, 2});
    setup.settings.schedule.wrap = wrap;
    expect_close(expected, run_without_noise(setup), tolerance);
  }
}

TEST(VitParity, RecomputationChangesNoBit) {
  using model::OpKind;
  RunSetup setup = in_float({2, 2, 2}, 3);
  const Outcome expected = run(setup);
  for (const plan::Recompute& what :
       {plan::Recompute{.mode = Mode::full},
        plan::Recompute{.mode = Mode::selective, .kinds = {OpKind::full_attention, OpKind::gelu_exact}}}) {
    setup.settings.schedule.recompute = what;
    expect_same_bits(expected, run(setup));
  }
}

TEST(VitParity, HalvesFollowFloat) {
  const Outcome expected = run(in_float({1, 1, 2}));
  RunSetup setup = in_float({1, 1, 2});
  setup.settings.schedule.precision.parameters = DType::bf16;
  const Outcome half = run(setup);
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(half.losses[i], expected.losses[i], 0.02 * expected.losses[i]);
}

TEST(VitParity, TheArenaIsWhatThePlanSays) { expect_the_planned_arena(in_float({1, 1, 2}, 2)); }

}  // namespace
}  // namespace foreshard::parity
