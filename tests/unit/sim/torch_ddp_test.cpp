// PyTorch's DistributedDataParallel in virtual time: what is reduced, when, and what it costs. Its memory is compared
// with PyTorch's in torch_memory_test.cpp.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/runtimes/named_models.hpp"
#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

constexpr Software steady{.varies = false};

TorchRun run_of(const char* model, Batch batch, int ranks) {
  TorchRun run;
  run.runtime = Runtime::ddp, run.model = named_models().at(model), run.batch = batch;
  run.wrap.replicas = ranks, run.wrap.compute = DType::f32, run.wrap.mixed = false;
  return run;
}

struct Step {
  std::vector<Ran> reductions;
  Nanoseconds backward_end = 0;  ///< of its last kernel
  StepTimes times;
};

std::vector<Step> steps_of(const TorchRun& run, const Cluster& cluster, int count) {
  GpuKernels kernels(cluster, steady, run.wrap.world, run.wrap.replicas);
  Gpu gpu(kernels, steady);
  gpu.keep_trace();
  TorchSteps training(run, gpu);
  std::vector<Step> steps;
  for (int i = 0; i < count; ++i) {
    Step& step = steps.emplace_back();
    step.times = training.step().second;
    for (const Ran& ran : gpu.ran()) {
      if (ran.kind == OpKind::all_reduce) step.reductions.push_back(ran);
      if (ran.kind != OpKind::all_reduce && ran.kind != OpKind::cast && ran.phase == StepPhase::backward)
        step.backward_end = std::max(step.backward_end, ran.span.end);
    }
  }
  return steps;
}

std::int64_t parameters_of(const TorchRun& run, std::int64_t& largest) {
  std::int64_t all = 0;
  for (const auto& unit : unit_shapes(run.model))
    for (const ParameterShape& shape : unit) all += shape.elements(), largest = std::max(largest, shape.elements());
  return all;
}

/// A bucket is closed by the gradient that reaches its limit: 1 MiB for the first one, then bucket_cap_mb.
TEST(TorchDdp, ReducesOneBucketInTheFirstStepThenInOrderOfArrival) {
  TorchRun run = run_of("gpt2", {1, 256}, 8);
  std::int64_t largest = 0;
  const std::int64_t parameters = parameters_of(run, largest);
  for (const std::int64_t mebibytes : {25, 60}) {
    run.wrap.bucket_bytes = mebibytes << 20;
    const std::vector<Step> steps = steps_of(run, read_cluster("dgx-a100"), 2);
    ASSERT_EQ(steps[0].reductions.size(), 1u);
    EXPECT_EQ(steps[0].reductions[0].bytes, 4.0 * static_cast<double>(parameters));
    EXPECT_GE(steps[0].reductions[0].span.start, steps[0].backward_end);
    const std::vector<Ran>& buckets = steps[1].reductions;
    ASSERT_GT(buckets.size(), 3u);
    double all = 0;
    for (std::size_t i = 0; i < buckets.size(); ++i) {
      const auto limit = static_cast<double>(i == 0 ? 1 << 20 : run.wrap.bucket_bytes);
      all += buckets[i].bytes;
      if (i + 1 < buckets.size()) {
        EXPECT_GE(buckets[i].bytes, limit) << i;
        EXPECT_LT(buckets[i].bytes, limit + 4.0 * static_cast<double>(largest)) << i;
        EXPECT_GE(buckets[i].unit, buckets[i + 1].unit) << i;
      }
    }
    EXPECT_EQ(all, 4.0 * static_cast<double>(parameters));
  }
}

TEST(TorchDdp, HidesReductionsBehindBackward) {
  const std::vector<Step> steps = steps_of(run_of("gpt2", {8, 512}, 8), read_cluster("dgx-a100"), 4);
  EXPECT_NEAR(steps.front().times.exposed_s, steps.front().times.communication_busy_s, 1e-6);
  EXPECT_LT(steps.back().times.exposed_s, 0.2 * steps.back().times.communication_busy_s);
  EXPECT_LT(steps.back().reductions.front().span.start, steps.back().backward_end);
}

TEST(TorchDdp, IsBoundByTheNetworkWhereThatIsSlow) {
  Cluster slow = read_cluster("dgx-a100");
  slow.intra.efficiency.value = 0.001;
  const StepTimes times = steps_of(run_of("gpt2", {1, 16}, 8), slow, 3).back().times;
  EXPECT_GE(times.seconds, times.communication_busy_s);
  EXPECT_LT(times.seconds, 1.02 * times.communication_busy_s);
}

TEST(TorchDdp, ReducesInEachMicroBatchUnlessItIsTold) {
  TorchRun run = run_of("gpt2-tiny", {1, 64}, 8);
  const auto reductions = [&] { return steps_of(run, read_cluster("dgx-a100"), 2).back().reductions.size(); };
  const std::size_t once = reductions();
  run.micro_batches = 3;
  EXPECT_EQ(reductions(), 3 * once);
  run.no_sync = true;
  EXPECT_EQ(reductions(), once);
}

TEST(TorchDdp, CopiesNothingBackToGradientsThatAreViews) {
  TorchRun run = run_of("gpt2", {1, 64}, 1);
  const auto backward = [&] { return steps_of(run, read_cluster("dgx-a100"), 3).back().times.backward_s; };
  std::int64_t largest = 0;
  const double bytes = 4.0 * static_cast<double>(parameters_of(run, largest));
  const double copied = backward();
  run.wrap.gradients_are_views = true;
  const double moved_s = 2 * bytes / 2.0e12;  // each read and written, at the A100's 2 TB/s
  EXPECT_NEAR(copied - backward(), moved_s, 0.25 * moved_s);
}

/// Under autocast parameters, gradients and moments stay in f32, and the cast weights are there beside them.
TEST(TorchDdp, KeepsF32BesideTheTypeThatItComputesIn) {
  TorchRun run = run_of("llama-tiny", {1, 32}, 8);
  const RunMemory whole = live_memory(run, 2);
  run.wrap.compute = DType::bf16, run.wrap.mixed = true;
  const RunMemory cast = live_memory(run, 2);
  EXPECT_EQ(cast.initial, whole.initial);
  EXPECT_EQ(cast.steps[1].after_step, whole.steps[1].after_step);
}

}  // namespace
}  // namespace foreshard::sim::torch
