// The choice between cuDNN's attention and our own: what is measured, what is kept, and that steps follow it.
#include "engine/cuda/attention_choices.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "engine/attentions.hpp"
#include "rehearsal/cudnn/fault.hpp"
#include "rehearsed.hpp"

namespace foreshard::parity {
namespace {

using engine::KernelChoices;
using testing::AnyOf;
using testing::HasSubstr;

RunSetup setup_of(DType parameters) {
  const model::GptConfig small{.layers = 2, .width = 16, .heads = 2, .vocab_size = 37, .max_seq_len = 8};
  RunSetup setup{.settings = settings_of(small, 8, 12, full_shard(2), 1), .dtype = DType::f32, .reference = false};
  setup.learning_rates = {1e-2, 1e-2, 1e-2};
  setup.batch = [vocab = small.vocab_size](std::int64_t step) { return formula_batch(12, 8, vocab, step, 5); };
  setup.settings.schedule.precision = {.parameters = parameters, .reduction = DType::f32};
  return setup;
}

/// Of all attentions of a plan.
KernelChoices by_cudnn(const plan::Plan& plan) {
  KernelChoices choices;
  for (const engine::AttentionCall& call : engine::attentions_of(plan)) choices.emplace(name_of(call), "cudnn");
  return choices;
}

Outcome run_with(RunSetup setup, bool cudnn, bool graphs = true) {
  setup.before_step = [cudnn](train::TrainingRank& rank, int, std::int64_t step) {
    if (step == 1 && cudnn) rank.engine().use_kernels(by_cudnn(rank.plan()), rank.plan());
  };
  return run_rehearsed(setup, {.graphs = graphs});
}

TEST(AttentionChoices, AreFollowed) {
  const Outcome ours = run_with(setup_of(DType::bf16), false), cudnn = run_with(setup_of(DType::bf16), true);
  ASSERT_EQ(cudnn.losses.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(cudnn.losses[i], ours.losses[i], 2e-3 * ours.losses[i]);
  EXPECT_NE(cudnn.losses, ours.losses) << "cuDNN does not round scores to halves";
}

TEST(AttentionChoices, GiveTheSameBitsByGraphAndOpByOp) {
  const Outcome replayed = run_with(setup_of(DType::bf16), true), issued = run_with(setup_of(DType::bf16), true, false);
  EXPECT_EQ(replayed.losses, issued.losses);
}

TEST(AttentionChoices, AreRefusedWhereCudnnHasNone) {
  try {
    run_with(setup_of(DType::f32), true);
    FAIL() << "f32 is not for cuDNN";
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("cuDNN has no such kernel"));
  }
}

/// What is measured on rank 0 in a run, and how it was beforehand.
KernelChoices measured(float wrong_by) {
  rehearsal::scale_attention(wrong_by);
  RunSetup setup = setup_of(DType::bf16);
  KernelChoices seen;
  setup.before_step = [&seen](train::TrainingRank& rank, int number, std::int64_t step) {
    if (step > 1 || number > 0) return;
    for (const auto& [name, choice] : rank.engine().measure_kernels(rank.plan()))
      if (name.starts_with("attention")) seen.emplace(name, choice);
  };
  run_rehearsed(setup);
  rehearsal::scale_attention(1);
  return seen;
}

TEST(AttentionChoices, AreCudnnOnlyWhereItAgreesWithOurs) {
  for (const auto& [name, choice] : measured(1)) {
    EXPECT_EQ(name, "attention bf16 6x8x2x8 kv2 causal");
    EXPECT_EQ(choice, "cudnn");
  }
  testing::internal::CaptureStderr();
  EXPECT_EQ(measured(1.1F), KernelChoices());
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("cuDNN's results are not ours"));
}

}  // namespace
}  // namespace foreshard::parity
