#include <gtest/gtest.h>

#include "sim/closed_form/memory.hpp"

namespace foreshard::sim::closed_form {
namespace {

/// Llama-2-7B: 32 · (4 · 4096² + 3 · 4096 · 11008) + 2 · 32000 · 4096 parameters in matrices.
Step llama_7b() {
  return {.layers = 32,
          .width = 4096,
          .heads = 32,
          .kv_heads = 32,
          .ffn_width = 11008,
          .vocab_size = 32000,
          .rows = 1,
          .seq_len = 1,
          .gated_mlp = true,
          .tied_head = false,
          .gpus = 8,
          .shard_degree = 8};
}
constexpr double matrices = 32 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) + 2.0 * 32000 * 4096;

TEST(ClosedFormMemory, OfTheStateIsItsShards) {
  EXPECT_NEAR(peak_memory(llama_7b(), {}).state, matrices * 12 / 8, 1);
  Step whole = llama_7b();
  whole.shards_parameters = false;
  EXPECT_NEAR(peak_memory(whole, {}).state, matrices * (4 + 8.0 / 8), 1) << "ZeRO-1 and 2 keep whole parameters";
  EXPECT_NEAR(peak_memory(llama_7b(), {.parameter = 2, .moments = 4, .gradient = 2}).state, matrices * 6 / 8, 1);
}

/// Without activations the update is what needs most: 16 bytes a parameter and temporaries of a shard's size.
TEST(ClosedFormMemory, OfTheUpdateIsStateGradientsAndTemporaries) {
  EXPECT_NEAR(peak_memory(llama_7b(), {}).at_update, matrices * (16 + 4) / 8, 1);
  EXPECT_NEAR(peak_memory(llama_7b(), {.update_temporaries = 0}).at_update, matrices * 16 / 8, 1);
}

/// Saved numbers of an eager gated block, h = width, k = f = 11008: 6h norms, 2h their outputs, 4h attention with its
/// result, 2h rotated, 4f of the feed-forward layer.
TEST(ClosedFormMemory, OfActivationsIsWhatBlocksSave) {
  Step step = llama_7b();
  step.rows = 2, step.seq_len = 2048;
  const double tokens = 4096, saved = 2 * (14.0 * 4096 + 4 * 11008), input = 2 * 4096;
  EXPECT_NEAR(peak_memory(step, {}).activations, tokens * (32 * saved + 2 * input), 1);
  step.recomputed = 1;
  EXPECT_NEAR(peak_memory(step, {}).activations, tokens * (32 * input + 2 * input), 1);
  const PeakMemory full = peak_memory(step, {});
  EXPECT_GT(full.in_backward, full.activations + tokens * saved) << "a block is computed again";
}

/// A compiler keeps what products work on: norms' inputs and outputs, 4h, attention's 4h, and 3f of the feed-forward
/// layer. By hand norms and the activation are computed again: 2h, 4h, and the activation's two inputs.
TEST(ClosedFormMemory, OfCompiledBlocksIsLess) {
  Step step = llama_7b();
  step.rows = 2, step.seq_len = 2048;
  const double compiled = 2 * (8.0 * 4096 + 3 * 11008), selected = 2 * (2.0 * 4096 + (5.0 * 4096 + 2 * 11008) / 2);
  const double fewest = 2 * (6.0 * 4096 + 2 * 11008);
  EXPECT_NEAR(peak_memory(step, {.saving = Saving::fewest}).activations, 4096 * (32 * fewest + 4 * 4096), 1);
  EXPECT_NEAR(peak_memory(step, {.saving = Saving::compiled}).activations, 4096 * (32 * compiled + 4 * 4096), 1);
  EXPECT_NEAR(peak_memory(step, {.saving = Saving::selected}).activations, 4096 * (32 * selected + 4 * 4096), 1);
}

/// The inputs of frozen products are not kept: 14h + 4f without one h and one f.
TEST(ClosedFormMemory, OfFrozenProductsLeavesOutTheirInputs) {
  Step step = llama_7b();
  step.rows = 2, step.seq_len = 2048;
  const double saved = 2 * (13.0 * 4096 + 3 * 11008);
  EXPECT_NEAR(peak_memory(step, {.trained_part = 0.01}).activations, 4096 * (32 * saved + 4 * 4096), 1);
  const double inputs = 2 * (14.0 * 4096 + 4 * 11008);
  EXPECT_NEAR(peak_memory(step, {.trained_part = 0.01, .adapts_all_products = true}).activations,
              4096 * (32 * inputs + 4 * 4096), 1)
      << "adapters of all products need them";
  const double in_f32 = saved + 4 * (3.0 * 4096 + 11008);
  EXPECT_NEAR(peak_memory(step, {.trained_part = 0.01, .product_inputs = 4}).activations,
              4096 * (32 * in_f32 + 4 * 4096), 1)
      << "products of four bits keep them";
}

TEST(ClosedFormMemory, OfAdaptersIsTheirShardsBesideTheFrozen) {
  const PeakMemory m = peak_memory(llama_7b(), {.parameter = 0.5, .moments = 4, .trained_part = 0.01, .adapter = 2});
  EXPECT_NEAR(m.state, matrices * (0.5 + 0.01 * (2 + 4)) / 8, 1);
}

TEST(ClosedFormMemory, UpdatesOfOneUnitAfterTheOtherNeedItsTemporaries) {
  EXPECT_NEAR(peak_memory(llama_7b(), {.updates_one_by_one = true}).at_update, matrices * (16 + 4.0 / 32) / 8, 1);
}

TEST(ClosedFormMemory, GatheredAreTheRootAndSomeBlocks) {
  const double root = 2.0 * 32000 * 4096, block = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008;
  EXPECT_NEAR(peak_memory(llama_7b(), {.gathered = 0.5, .gathered_blocks = 4}).gathered, 2 * root + 4 * 0.5 * block, 1);
}

TEST(ClosedFormMemory, HeldIsThePeakInPiecesAndWhatOutlastsIt) {
  Step step = llama_7b();
  step.rows = 8, step.seq_len = 2048;
  const PeakMemory m = peak_memory(step, {});
  EXPECT_NEAR(m.outlasting, matrices * (4 + 4) / 8, 1);
  EXPECT_NEAR(m.held(1.25), m.state + 1.25 * (m.at_loss - m.state) + m.outlasting, 1);
  EXPECT_NEAR(m.needed(1.25), m.state + 1.25 * (m.peak() - m.state), 1) << "what lasts lies together";
  step.rows = step.seq_len = 1;
  const PeakMemory few = peak_memory(step, {});
  EXPECT_NEAR(few.held(1), few.in_backward + matrices, 1) << "gradients and temporaries of 8 bytes, over 8 ranks";
}

/// From the second micro-batch on, gradients are there from the start.
TEST(ClosedFormMemory, GradientsLiveThroughLaterMicroBatches) {
  Step step = llama_7b();
  const PeakMemory once = peak_memory(step, {});
  step.micro_batches = 2;
  const PeakMemory twice = peak_memory(step, {});
  EXPECT_NEAR(twice.at_loss, once.at_loss + matrices * 4 / 8, 1);
  EXPECT_NEAR(twice.in_backward, once.in_backward + matrices * 4 / 8 * 31 / 32, 1);
  EXPECT_NEAR(twice.at_update, once.at_update, 1);
}

/// Of a block of 202 M parameters its halves, and twice its gradient in fp32: about to be reduced, and in reduction.
TEST(ClosedFormMemory, InBackwardTwoGradientsAreOnTheirWay) {
  Step step = llama_7b();
  step.layers = 1;
  const double block = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008;
  const double before = peak_memory(step, {.gradient = 0}).in_backward;
  step.reduced_bytes = 4;
  EXPECT_NEAR(peak_memory(step, {.gradient = 0}).in_backward - before, 2 * 2 * block, 1) << "two bytes more of each";
}

TEST(ClosedFormMemory, TablesOfAFourBitBaseStayHalves) {
  const double tables = 2.0 * 32000 * 4096;
  EXPECT_NEAR(peak_memory(llama_7b(), {.parameter = 0.5, .trained_part = 0, .table = 2}).state,
              ((matrices - tables) * 0.5 + tables * 2) / 8, 1);
}

TEST(ClosedFormMemory, OfTheLossGrowsWithTheVocabulary) {
  Step step = llama_7b();
  step.seq_len = 1000;
  EXPECT_NEAR(peak_memory(step, {.loss_bytes = 14}).loss, 14.0 * 1000 * 32000, 1);
}

TEST(ClosedFormMemory, OfFrozenParametersIsTheirShardsAlone) {
  const PeakMemory m = peak_memory(llama_7b(), {.parameter = 2, .trained_part = 0});
  EXPECT_NEAR(m.state, matrices * 2 / 8, 1);
  EXPECT_NEAR(m.at_update, m.state, 1);
}

TEST(ClosedFormMemory, WithoutReshardingAllBlocksAreWhole) {
  Step step = llama_7b();
  const double resharded = peak_memory(step, {}).gathered;
  step.reshards_after_forward = false;
  EXPECT_NEAR(peak_memory(step, {}).gathered, matrices * 2, 1);
  EXPECT_NEAR(resharded, (2.0 * 32000 * 4096 + 2 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008)) * 2, 1);
}

}  // namespace
}  // namespace foreshard::sim::closed_form
