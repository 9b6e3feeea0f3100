// Runs of PyTorch's FSDP in its caching allocator: what follows from streams, from the limiter and from little memory.
#include <gtest/gtest.h>

#include "sim/runtimes/cached_memory.hpp"
#include "sim/runtimes/torch_report.hpp"

namespace foreshard::sim::torch {
namespace {

const Cluster& cluster() {
  static const Cluster one = read_cluster("dgx-a100");
  return one;
}

TorchJob job_of(Runtime runtime, std::int64_t tokens) {
  TorchJob job;
  job.run.runtime = runtime, job.run.batch = {1, tokens}, job.run.wrap.world = 8;
  job.run.model =
      Decoder{.width = 2048, .ffn = 8192, .layers = 24, .heads = 32, .kv_heads = 32, .vocab = 1024, .positions = 4096};
  return job;
}

constexpr std::int64_t block_bytes = 2 * 12 * 2048 * 2048;  // gathered, without biases
constexpr std::int64_t workspaces = 2 * 8'519'680 + (1 << 20);

TEST(TorchAllocator, HoldsLiveTensorsRoundedAndWorkspaces) {
  const TorchPrediction prediction = predict(job_of(Runtime::fsdp2, 2048), cluster());
  const std::int64_t live = prediction.memory.steps.back().peak, allocated = prediction.peaks.back().allocated;
  EXPECT_GE(allocated, live + workspaces);
  EXPECT_LT(allocated, live + workspaces + (8 << 20));
}

/// FSDP2 orders its streams by events alone, FSDP1 records buffers on other streams.
TEST(TorchAllocator, KeepsFreedBlocksActiveOnlyWhereOtherStreamsWereRecorded) {
  const AllocatorPeaks two = predict(job_of(Runtime::fsdp2, 2048), cluster()).peaks.back();
  EXPECT_EQ(two.active, two.allocated);
  const AllocatorPeaks one = predict(job_of(Runtime::fsdp1, 2048), cluster()).peaks.back();
  EXPECT_GT(one.active, one.allocated);
  EXPECT_LE(one.active, one.allocated + 4 * block_bytes);
}

/// Without the limiter the host runs ahead of the device, and each gather takes memory of its own: as many units as
/// there are, at its worst.
TEST(TorchAllocator, HoldsUnitsOfManyLayersWithoutTheLimiter) {
  TorchJob job = job_of(Runtime::fsdp1, 2048);
  job.run.recompute = true;
  const AllocatorPeaks limited = predict(job, cluster()).peaks.back();
  job.run.wrap.limits_gathers = false;
  const AllocatorPeaks free = predict(job, cluster()).peaks.back();
  EXPECT_GT(free.active - limited.active, 15 * block_bytes);
  EXPECT_GT(free.reserved - limited.reserved, 15 * block_bytes);
  EXPECT_LT(free.allocated, 1.01 * static_cast<double>(limited.allocated));
}

/// With just less memory than it would reserve, a run waits for the device again and again; with less than it has
/// allocated it ends in its first step, or where optimizer state comes in the second, or before any.
TEST(TorchAllocator, SlowsDownThenFailsAsMemoryShrinks) {
  TorchJob job = job_of(Runtime::fsdp1, 2048);
  job.run.wrap.limits_gathers = false;
  const TorchPrediction ample = predict(job, cluster());
  EXPECT_EQ(ample.peaks.back().retries, 0);
  const auto with = [&](std::int64_t bytes) {
    Cluster small = cluster();
    small.device.memory_bytes.value = static_cast<double>(bytes + ample.outside_bytes);
    return predict(job, small);
  };
  const TorchPrediction tight = with(ample.peaks.back().allocated + 6 * block_bytes);
  ASSERT_EQ(tight.out_of_memory, "");
  EXPECT_GT(tight.peaks.back().retries, 0);
  EXPECT_GT(tight.steady.seconds, ample.steady.seconds);
  const TorchPrediction first = with(ample.peaks.front().allocated / 2);
  EXPECT_EQ(first.failed_step, 1);
  EXPECT_NE(verdict_text(first).find("in step 1"), std::string::npos);
  EXPECT_EQ(with(ample.memory.initial / 2).failed_step, 0);
}

TEST(TorchAllocator, FailsInTheSecondStepWhereOptimizerStateIsTheRest) {
  TorchJob job = job_of(Runtime::fsdp2, 4096);
  job.run.wrap.world = 1, job.run.wrap.compute = DType::f32;
  const TorchPrediction ample = predict(job, cluster());
  Cluster small = cluster();
  small.device.memory_bytes.value =
      static_cast<double>((ample.peaks.front().allocated + ample.peaks.back().allocated) / 2 + ample.outside_bytes);
  EXPECT_EQ(predict(job, small).failed_step, 2);
}

}  // namespace
}  // namespace foreshard::sim::torch
