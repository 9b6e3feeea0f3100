#include "sim/closed_form/step_time.hpp"

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "sim/closed_form/profile.hpp"

namespace foreshard::sim::closed_form {
namespace {

/// Everything at its best rate, and nothing but what is asked for.
Efficiency ideal() {
  return {.products = 1,
          .attention = 1,
          .attention_backward = 1,
          .attention_ramp_s = 0,
          .memory = 1,
          .elementwise = 0,
          .loss_bytes = 0,
          .update_bytes = 0,
          .network = 1,
          .contention = 0,
          .jitter = 0,
          .host_s = 0};
}

GpuRates gpu() {
  return {.product_flops = 1e14,
          .half_flops = 1e14,
          .memory_bytes = 1e30,
          .multiprocessors = 1,
          .node_link_bytes = 1e30,
          .network_bytes = 1e30};
}

Step llama() {
  return {.layers = 32,
          .width = 4096,
          .heads = 32,
          .kv_heads = 8,
          .ffn_width = 14336,
          .vocab_size = 128256,
          .rows = 2,
          .seq_len = 4096,
          .gated_mlp = true,
          .gpus = 16,
          .shard_degree = 16};
}

/// Six FLOPs a parameter that multiplies and token, and attention's 3.5 products of half the scores twice over.
TEST(ClosedForm, OfAnIdealMachineIsItsFlops) {
  const double tokens = 2 * 4096, block = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336);
  const double products = 6 * tokens * (32 * block + 128256.0 * 4096) / 1e14;
  const double attention = 3.5 * 32 * 2 * tokens * 4096 * 4096 / 1e14;
  const StepTime time = step_time(llama(), gpu(), ideal());
  EXPECT_NEAR(time.products_s, products, 1e-9);
  EXPECT_NEAR(time.attention_s, attention, 1e-9);
  EXPECT_NEAR(time.step_s, products + attention, 1e-9);
  EXPECT_EQ(time.exposed_s, 0);
}

TEST(ClosedForm, AWindowLeavesOutItsPairs) {
  Step windowed = llama();
  windowed.attention_window = 1024;
  const double pairs = 1024.0 * 1025 / 2 + 3072.0 * 1024, all = 4096.0 * 4097 / 2, diagonal = 2048;
  const double expected = step_time(llama(), gpu(), ideal()).attention_s * (pairs - diagonal) / (all - diagonal);
  EXPECT_NEAR(step_time(windowed, gpu(), ideal()).attention_s, expected, 1e-9);
  windowed.attention_window = 4096;
  EXPECT_EQ(step_time(windowed, gpu(), ideal()).step_s, step_time(llama(), gpu(), ideal()).step_s);
}

/// Inputs of the four products, 3h + f, gradients of their results, 3h + kv + 2f, and the block's parameters are cast.
TEST(ClosedForm, CastsToNarrowNumbersMoveTheOperandsOfProducts) {
  Efficiency casting = ideal();
  casting.cast_bytes = 4;
  GpuRates slow = gpu();
  slow.product_flops = slow.half_flops = 1e30;
  slow.memory_bytes = 1e12;
  const double block = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336);
  const double forward = 3 * 4096 + 14336, results = 3 * 4096 + 2 * 1024 + 2 * 14336;
  const double added = step_time(llama(), slow, casting).step_s - step_time(llama(), slow, ideal()).step_s;
  EXPECT_NEAR(added, 32 * 4 * (8192 * (forward + results) + block) / 1e12, 1e-9);
}

TEST(ClosedForm, RecomputationAddsTheBlocksForwards) {
  Step step = llama();
  const StepTime none = step_time(step, gpu(), ideal());
  step.recomputed = 1;
  const double head = 6 * 8192.0 * 128256 * 4096 / 1e14;
  const StepTime full = step_time(step, gpu(), ideal());
  EXPECT_NEAR(full.recompute_s, (none.products_s - head) / 3 + none.attention_s / 3.5, 1e-9);
  EXPECT_NEAR(full.step_s, none.step_s + full.recompute_s, 1e-9);
}

TEST(ClosedForm, OfCommunicationAloneIsItsBytes) {
  GpuRates slow = gpu();
  slow.product_flops = slow.half_flops = 1e30;
  slow.network_bytes = 1e9;  // 8 GPUs a node: 8 GB/s
  Step step = llama();
  step.reduced_bytes = 4;
  const double block = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336);
  const double gather = block * 2 * 15 / 16 / 8e9, reduce = 2 * gather;
  const StepTime time = step_time(step, slow, ideal());
  EXPECT_NEAR(time.communication_s, 32 * (2 * gather + reduce), 1e-9);
  EXPECT_NEAR(time.step_s, 32 * (2 * gather + reduce) + gather + reduce, 1e-6)
      << "the first gather, the last reduction";
  EXPECT_NEAR(time.exposed_s, time.step_s, 1e-6);
}

TEST(ClosedForm, ReplicasSumTheirShards) {
  GpuRates slow = gpu();
  slow.product_flops = slow.half_flops = 1e30;
  slow.network_bytes = 1e9;
  Step step = llama();
  step.shard_degree = 8;
  const double shard = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336) * 2 / 8;
  EXPECT_NEAR(step_time(step, slow, ideal()).communication_s, 32 * 2 * shard * (1.0 / 2) / 1e9, 1e-9);
}

TEST(ClosedForm, MicroBatchesMultiplyAndOneGpuTalksToNobody) {
  Step step = llama();
  const double once = step_time(step, gpu(), ideal()).step_s;
  step.micro_batches = 7;
  EXPECT_NEAR(step_time(step, gpu(), ideal()).step_s, 7 * once, 1e-9);
  step.gpus = step.shard_degree = 1;
  EXPECT_EQ(step_time(step, gpu(), ideal()).communication_s, 0);
}

/// The head alone, of 109 tiles of 128 × 256: two waves of 108 multiprocessors.
TEST(ClosedForm, ProductsTakeWholeWavesOfTiles) {
  GpuRates wide = gpu();
  wide.multiprocessors = 108;
  const Step step{.width = 256, .ffn_width = 256, .vocab_size = 256, .rows = 109, .seq_len = 128};
  EXPECT_NEAR(step_time(step, wide, ideal()).products_s, 6.0 * 216 * 128 * 256 * 256 / 1e14, 1e-12);
}

TEST(ClosedForm, AttentionIsComputedInPaddedHeads) {
  Step step = llama();
  const double exact = step_time(step, gpu(), ideal()).attention_s;
  step.attention_head_width = 192;
  EXPECT_NEAR(step_time(step, gpu(), ideal()).attention_s, 1.5 * exact, 1e-9);
}

TEST(ClosedForm, RecomputationThatStopsEarlyLeavesOutTheLastProduct) {
  Step step = llama();
  step.recomputed = 1;
  const double all = step_time(step, gpu(), ideal()).recompute_s;
  step.stops_recomputation_early = true;
  EXPECT_NEAR(step_time(step, gpu(), ideal()).recompute_s, all - 32 * 2 * 8192.0 * 4096 * 14336 / 1e14, 1e-9);
}

TEST(ClosedForm, WithoutPrefetchBackwardWaitsForItsCollectives) {
  GpuRates slow = gpu();
  slow.network_bytes = 1e11;
  Step step = llama();
  const double overlapped = step_time(step, slow, ideal()).step_s;
  step.overlaps_backward = false;
  const double block = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336), once = block * 2 * 15 / 16 / 8e11;
  EXPECT_NEAR(step_time(step, slow, ideal()).step_s - overlapped, 32 * 2 * once, 1e-9);
}

/// Gradients that all ranks keep whole are reduced in the last micro-batch; the update's result is shared out.
TEST(ClosedForm, OptimizerShardsCommunicateOnceAStep) {
  GpuRates slow = gpu();
  slow.product_flops = slow.half_flops = 1e30;
  slow.network_bytes = 1e9;
  Step step = llama();
  step.shards_parameters = step.reshards_after_forward = step.shards_gradients = false;
  step.micro_batches = 5;
  const double block = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336), once = block * 2 * 15 / 16 / 8e9;
  const StepTime time = step_time(step, slow, ideal());
  EXPECT_NEAR(time.communication_s, 32 * 2 * once, 1e-9);
  EXPECT_NEAR(time.update_s, 32 * once, 1e-9);
}

/// Forward, the products of the inputs' gradients, and all of attention.
TEST(ClosedForm, FrozenParametersNeedNoGradients) {
  Step step = llama();
  const StepTime whole = step_time(step, gpu(), ideal());
  step.trained = 0.01;
  EXPECT_NEAR(step_time(step, gpu(), ideal()).step_s, whole.step_s - whole.products_s / 3, 1e-9);
}

TEST(ClosedForm, ComputeSlowsWhileACollectiveMovesData) {
  GpuRates linked = gpu();
  linked.node_link_bytes = 1e12;
  Step step = llama();
  step.gpus = step.shard_degree = 8;
  const double block = 4096.0 * (2 * 4096 + 2 * 1024 + 3 * 14336), once = block * 2 * 7 / 8 / 1e12;
  const auto slowed_by = [&] {
    Efficiency e = ideal();
    const double free = step_time(step, linked, e).step_s;
    e.contention = 0.25;
    return step_time(step, linked, e).step_s - free;
  };
  EXPECT_NEAR(slowed_by(), 0.25 * 32 * 3 * once, 1e-9);
  linked.network_bytes = 1e12 / 16;  // of 8 GPUs: half of the links inside
  step.gpus = step.shard_degree = 16;
  EXPECT_NEAR(slowed_by(), 0.25 * 32 * 3 * 2 * once * (15.0 / 16) / (7.0 / 8), 1e-9)
      << "longer, where links are slower";
}

TEST(ClosedForm, CopiesOfGradientsMoveTheirBytes) {
  GpuRates slow = gpu();
  slow.memory_bytes = 1e15;
  Step step = llama();
  const double without = step_time(step, slow, ideal()).step_s;
  step.gradient_copy_bytes = 14;
  EXPECT_NEAR(step_time(step, slow, ideal()).step_s - without, 14 * parameters_of(step) / 1e15, 1e-9);
}

TEST(ClosedFormProfile, KnowsGpusByThePrintedNameAndMemory) {
  const Profile profile;
  EXPECT_EQ(profile.gpu("A100", 40).name, "a100-sxm-40gb");
  EXPECT_EQ(profile.gpu("A100", 80).name, "a100-sxm-80gb");
  EXPECT_EQ(profile.gpu("A100").name, "a100-sxm-80gb");
  EXPECT_EQ(profile.gpu("H200", 141).name, "h200");
  EXPECT_DOUBLE_EQ(profile.gpu("H100").half_flops, 989e12);
  EXPECT_THROW(profile.gpu("H1000"), InputError);
}

}  // namespace
}  // namespace foreshard::sim::closed_form
