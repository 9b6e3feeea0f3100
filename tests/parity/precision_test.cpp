// Mixed precision: fp32 shards, bf16 or fp16 between. The strategy changes no bit, and losses stay near those of fp32.
#include <gtest/gtest.h>

#include "expect.hpp"

namespace foreshard::parity {
namespace {

using plan::Keep;
using plan::Mesh;
using plan::Precision;

const model::GptConfig model_of_three{.layers = 3, .width = 24, .heads = 3, .vocab_size = 37, .max_seq_len = 11};
constexpr std::int64_t seq = 8, rows = 16;

RunSetup setup_of(const Mesh& mesh, const Precision& precision, int micro_batches = 2) {
  RunSetup setup{
      .settings = settings_of(model_of_three, seq, rows, mesh, micro_batches), .dtype = DType::f32, .reference = false};
  setup.settings.schedule.precision = precision;
  setup.batch = [](std::int64_t step) { return formula_batch(rows, seq, model_of_three.vocab_size, step % 3, 5); };
  return setup;
}

/// Relative to the loss: the rounding of bf16 is 2⁻⁸ a number, of fp16 2⁻¹¹, and averages over many.
void expect_near(const Outcome& expected, const Outcome& seen, double tolerance) {
  for (std::size_t i = 0; i < expected.losses.size(); ++i)
    EXPECT_NEAR(seen.losses[i], expected.losses[i], tolerance * expected.losses[i]) << "step " << i + 1;
  EXPECT_NE(expected.losses, seen.losses) << "nothing was rounded";
}

const Precision bf16{.parameters = DType::bf16}, fp16{.parameters = DType::f16},
    all_bf16{.parameters = DType::bf16, .reduction = DType::bf16},
    handed_in_full{.parameters = DType::bf16, .output = DType::f32};

TEST(MixedPrecision, LossesStayNearThoseOfFp32) {
  const Outcome full = run(setup_of({.inner = 4}, {}));
  expect_near(full, run(setup_of({.inner = 4}, bf16)), 4e-3);
  expect_near(full, run(setup_of({.inner = 4}, all_bf16)), 4e-3);
  expect_near(full, run(setup_of({.inner = 4}, handed_in_full)), 4e-3);
  expect_near(full, run(setup_of({.inner = 4}, fp16)), 5e-4);
}

TEST(MixedPrecision, KernelsAgreeWithTheReference) {
  RunSetup cpu = setup_of({.inner = 2}, bf16), reference = cpu;
  reference.reference = true;
  expect_near(run(reference), run(cpu), 2e-3);
}

/// Reduced in fp32, the sums are the same tree for every mesh.
TEST(MixedPrecision, NoMeshOrStrategyChangesABit) {
  const Outcome expected = run(setup_of({.inner = 8}, bf16, 1));
  for (const Mesh& mesh : {Mesh{8, 1, 1}, Mesh{2, 1, 4}, Mesh{1, 4, 2}, Mesh{2, 2, 2}})
    expect_same_bits(expected, run(setup_of(mesh, bf16, 1)));
  RunSetup kept = setup_of({.inner = 8}, bf16, 1);
  for (const Keep keep : {Keep::micro_batch, Keep::step}) {
    kept.settings.schedule.keep = keep;
    expect_same_bits(expected, run(kept));
  }
}

TEST(MixedPrecision, UnitsMayDiffer) {
  RunSetup mixed = setup_of({.inner = 2}, bf16);
  mixed.settings.schedule.precision_of_unit = {{}, fp16, {}, bf16};
  expect_near(run(setup_of({.inner = 2}, {})), run(mixed), 4e-3);
}

TEST(MixedPrecision, EqualsItselfUnderPrefetchLimitsAndRecomputation) {
  RunSetup setup = setup_of({.inner = 4}, bf16);
  const Outcome expected = run(setup);
  setup.settings.schedule.prefetch = plan::BackwardPrefetch::none;
  setup.settings.schedule.gather_limit = 1;
  setup.settings.schedule.recompute.mode = plan::Recompute::Mode::full;
  expect_same_bits(expected, run(setup));
}

}  // namespace
}  // namespace foreshard::parity
