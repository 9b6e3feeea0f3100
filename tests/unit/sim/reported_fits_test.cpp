// Runs that others report to fit a device or not, step by step in PyTorch's allocator.
#include <gtest/gtest.h>

#include "model/llama.hpp"
#include "plan/build.hpp"
#include "sim/closed_form/memory.hpp"
#include "sim/predict.hpp"
#include "sim/runtimes/named_models.hpp"
#include "sim/runtimes/torch_fit.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim {
namespace {

using allocator::Fit;
using allocator::FitVerdict;
using torch::Runtime;
using torch::UpdateLoop;

constexpr double llama_7b = 6'738'415'616, gib = 1024.0 * 1024 * 1024;

torch::TorchJob job_of(Runtime runtime, int ranks, torch::Batch batch) {
  torch::TorchJob job;
  job.run.runtime = runtime, job.run.model = torch::named_models().at("llama2-7b"), job.run.batch = batch;
  job.run.wrap.world = ranks;
  return job;
}

FitVerdict verdict_of(const torch::TorchJob& job, const char* cluster) {
  return torch::fit_of(torch::predict(job, read_cluster(cluster)));
}

/// tatsu-lab/stanford_alpaca#56: 7 billion parameters in fp32 with Adam are 107.8 GB before activations.
TEST(ReportedFits, SevenBillionInFullNeedTwoDevicesOf80GB) {
  torch::TorchJob job = job_of(Runtime::fsdp1, 1, {1, 512});
  job.run.wrap.compute = DType::f32, job.run.wrap.mixed = false, job.run.recompute = true;
  job.run.loop = UpdateLoop::fused;
  const FitVerdict alone = verdict_of(job, "8x-a100-80gb");
  EXPECT_EQ(alone.fit(), Fit::no);
  EXPECT_EQ(alone.phases.front().fit, Fit::fits) << "the model itself would";
  job.run.wrap.world = 2;
  const FitVerdict two = verdict_of(job, "8x-a100-80gb");
  EXPECT_TRUE(two.fits()) << two.text();
  const double between = static_cast<double>(torch::live_memory(job.run, 2).steps.back().after_step);
  EXPECT_NEAR(2 * between, 107.8e9, 0.1e9) << "shards of both; gradients live to the next forward";
}

/// Lightning-AI/lit-llama#389, PyTorch 2.0 on four A100 of 40 GB: out of memory as it was; with AdamW tensor by tensor
/// and the rate limiter it fits.
TEST(ReportedFits, FourDevicesOf40GBNeedTheLimiterAndNoLists) {
  torch::TorchJob job = job_of(Runtime::fsdp1, 4, {4, 1024});
  job.run.wrap.reduce = DType::bf16, job.run.recompute = true;
  job.run.traits.early_stop = false, job.run.traits.second_denominator = true;
  job.run.wrap.limits_gathers = false;
  const FitVerdict before = verdict_of(job, "8x-a100-40gb");
  EXPECT_EQ(before.fit(), Fit::no) << before.text();
  job.run.loop = UpdateLoop::one_by_one;
  const FitVerdict without_lists = verdict_of(job, "8x-a100-40gb");
  EXPECT_EQ(without_lists.fit(), Fit::retries) << "less is allocated, but all is reserved\n" << without_lists.text();
  job.run.wrap.limits_gathers = true;
  const FitVerdict after = verdict_of(job, "8x-a100-40gb");
  EXPECT_LE(after.fit(), Fit::tight) << after.text();
}

/// meta-llama/llama-cookbook#100, eight A10G of 24 GB: out of memory inside FSDP's constructor, which every rank gave a
/// whole copy in fp32. A half would have had room, and so would shards.
TEST(ReportedFits, AWholeCopyDoesNotFit24GB) {
  torch::TorchJob job = job_of(Runtime::fsdp1, 8, {1, 512});
  job.loading = allocator::Loading::whole;
  const torch::TorchPrediction whole = torch::predict(job, read_cluster("aws-g5"));
  EXPECT_NE(whole.out_of_memory, "");
  EXPECT_EQ(whole.failed_step, 0);
  EXPECT_EQ(torch::fit_of(whole).decisive().memory.phase, allocator::RunPhase::init);

  job.load_type = DType::bf16;
  const auto half = torch::predict(job, read_cluster("aws-g5")).init;
  EXPECT_GE(static_cast<double>(half.allocated) / gib, 12.55);
  EXPECT_LT(static_cast<double>(half.allocated) / gib, 12.55 + 1) << "and a flat parameter";
  EXPECT_LT(static_cast<double>(half.reserved) / gib, 20);
  job.loading = allocator::Loading::sharded;
  EXPECT_NEAR(static_cast<double>(torch::predict(job, read_cluster("aws-g5")).init.allocated), llama_7b * 4 / 8, 0.1e9);
}

/// pytorch/pytorch#97712, meta-pytorch/torchtune#389: lists of tensors cost the size of the parameters; all in bf16,
/// 7 billion parameters need 54 GB without them.
TEST(ReportedFits, ListsOfTensorsCostTheSizeOfTheParameters) {
  torch::TorchRun run = job_of(Runtime::fsdp2, 1, {1, 8}).run;
  run.wrap.weights = run.wrap.compute = run.wrap.reduce = DType::bf16, run.wrap.mixed = false;
  run.loop = UpdateLoop::one_by_one;
  const auto peak = [&] { return static_cast<double>(torch::live_memory(run, 2).steps.back().peak); };
  EXPECT_NEAR(peak(), 54e9, 1.1e9);
  run.loop = UpdateLoop::foreach;
  EXPECT_GE(peak(), (8 + 2) * llama_7b);
}

/// DeepSpeed#4527: 0.49 GB were estimated with everything in host memory, of one layer's parameters. 14.7 GB were used.
TEST(ReportedFits, WithEverythingOffloadedActivationsLogitsAndGathersRemain) {
  plan::ScheduleOptions options;
  options.precision.parameters = DType::bf16, options.offload = {true, true, true};
  const plan::Plan plan =
      plan::build_plan(model::build_llama(model::llama_preset("llama2-7b"), {1, 2048}), {1, 1, 4}, options);
  const Prediction prediction = predict_on_gpus(plan, read_cluster("dgx-a100"));
  closed_form::Step step;
  step.layers = 32, step.width = 4096, step.heads = step.kv_heads = 32, step.ffn_width = 11008;
  step.vocab_size = 32000, step.seq_len = 2048, step.gated_mlp = true, step.tied_head = false, step.shard_degree = 4;
  const closed_form::PeakMemory bound =
      closed_form::peak_memory(step, {.saving = closed_form::Saving::fewest, .loss_bytes = 2});
  EXPECT_GE(static_cast<double>(prediction.arena_bytes), bound.activations + bound.loss + bound.gathered);
  EXPECT_GT(bound.activations + bound.loss + bound.gathered, 10 * 0.49e9);
}

}  // namespace
}  // namespace foreshard::sim
