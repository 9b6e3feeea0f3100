// Activations, buffers and gradients whose size others derived or measured.
#include <gtest/gtest.h>

#include <algorithm>

#include "model/gpt.hpp"
#include "model/llama.hpp"
#include "plan/build.hpp"
#include "sim/predict.hpp"
#include "sim/runtimes/named_models.hpp"
#include "sim/runtimes/recorded_memory.hpp"

namespace foreshard::sim {
namespace {

using torch::Runtime;

/// What forward leaves for backward: bytes of `layers` layers, without shards.
std::int64_t left_by_forward(torch::TorchRun run, std::int64_t layers) {
  std::get<torch::Decoder>(run.model).layers = layers;
  const torch::RunMemory memory = torch::live_memory(run, 1);
  return memory.steps[0].after_forward - memory.initial;
}

/// huggingface/accelerate#4175: Qwen3-8B with 131,072 tokens a rank; the inputs of 36 recomputed layers are 38.65 GB,
/// of 32 they would be 34.36.
TEST(ReportedMemory, RecomputedLayersKeepTheirInputs) {
  torch::TorchRun run;
  run.model = torch::named_models().at("qwen3-8b"), run.batch = {1, 131'072}, run.wrap.world = 8;
  run.recompute = true;
  const std::int64_t layer = left_by_forward(run, 36) - left_by_forward(run, 35);
  EXPECT_EQ(layer, 131'072LL * 4096 * 2);
  EXPECT_NEAR(36e-9 * static_cast<double>(layer), 38.65, 0.01);
  EXPECT_NEAR(32e-9 * static_cast<double>(layer), 34.36, 0.01);
}

std::int64_t activations_of(std::int64_t layers) {
  const model::GptConfig config{
      .layers = layers, .width = 768, .heads = 12, .vocab_size = 50257, .max_seq_len = 1024, .dropout = 0.1};
  plan::ScheduleOptions options;
  options.precision.parameters = DType::bf16;
  const plan::Plan plan = plan::build_plan(model::build_gpt(config, {2, 1024}), {1, 1, 1}, options);
  const auto& peak = predict_on_gpus(plan, read_cluster("dgx-h100")).peak;
  return peak.bytes[static_cast<std::size_t>(plan::MemoryClass::activations)];
}

/// manuelescobar-dev/LLM-Tools#4: 34·s·b·h of Korthikanti et al. (arXiv 2205.05198) are bytes already. Two of them are
/// masks of dropout, which our kernels draw again; statistics of norms and attention are f32.
TEST(ReportedMemory, AHalfLayerKeepsThirtyTwoBytesANumberOfItsInput) {
  const double numbers = 2.0 * 1024 * 768, layer = static_cast<double>(activations_of(13) - activations_of(12));
  const double statistics = 4.0 * (2 * 2 + 12) / 768;
  EXPECT_NEAR(layer / numbers, 34 - 2 + statistics, 0.01);
}

/// NVIDIA-NeMo/Automodel#3708: both tables of 248,320 × 5,120 in one unit whose gradients are reduced in fp32.
TEST(ReportedMemory, TheRootsGradientIsTheLargestRequest) {
  torch::TorchJob job;
  job.run.model = torch::Decoder{.family = torch::Decoder::Family::llama,
                                 .width = 5120,
                                 .ffn = 8192,
                                 .layers = 1,
                                 .heads = 40,
                                 .kv_heads = 8,
                                 .vocab = 248'320,
                                 .tied = false};
  job.run.batch = {1, 64}, job.run.wrap.world = 8;
  constexpr std::int64_t tables = 10'171'187'200, norm = 4 * 5120;
  for (const Runtime runtime : {Runtime::fsdp1, Runtime::fsdp2}) {
    job.run.runtime = runtime;
    const allocator::PeakReport report = torch::explain_memory(job, read_cluster("dgx-h100"));
    EXPECT_EQ(report.largest_request.bytes, tables + norm);
  }
}

std::int64_t largest_buffer(const plan::Wrap& wrap) {
  const model::LlamaConfig config{.layers = 1,
                                  .width = 5120,
                                  .heads = 40,
                                  .vocab_size = 248'320,
                                  .max_seq_len = 64,
                                  .ffn_width = 8192,
                                  .kv_heads = 8};
  plan::ScheduleOptions options;
  options.wrap = wrap, options.precision.parameters = DType::bf16, options.precision.reduction = DType::f32;
  const plan::Plan plan = plan::build_plan(model::build_llama(config, {1, 64}), {1, 1, 8}, options);
  std::int64_t largest = 0;
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.memory == plan::MemoryClass::unsharded_gradients) largest = std::max(largest, buffer.size_bytes);
  return largest;
}

/// The same, split: each table is a unit of its own. Ours is padded to shards of 64 bytes.
TEST(ReportedMemory, TablesInUnitsOfTheirOwnHalveIt) {
  EXPECT_NEAR(static_cast<double>(largest_buffer({})), 10'171'187'200, 4 * 5120 + 512);
  EXPECT_NEAR(static_cast<double>(largest_buffer(
                  {.policy = plan::Wrap::Policy::list, .names = {"embed_tokens", "lm_head", "layers.0"}})),
              10'171'187'200 / 2, 512);
}

/// meta-pytorch/tnt#1057: 26 billion parameters on 16 ranks, gradients in bf16: 3.25 GB in shards, 52 GB whole.
TEST(ReportedMemory, AccumulatingWithoutReductionKeepsWholeGradients) {
  torch::TorchRun run;
  model::ProfileConfig model{.name = "26B", .units = {}, .head = {.name = "head", .parameters = 1'000'000'000}};
  for (int unit = 0; unit < 25; ++unit)
    model.units.push_back({.name = "u" + std::to_string(unit), .parameters = 1'000'000'000});
  run.model = model, run.batch = {1, 1}, run.micro_batches = 2;
  run.wrap.world = 16, run.wrap.weights = run.wrap.compute = run.wrap.reduce = DType::bf16, run.wrap.mixed = false;
  constexpr double unit = 2, without = 3.25 + 2 * 3.25 + unit;  // shards, moments, and the root, which stays gathered
  const auto gradients = [&](Runtime runtime, bool no_sync) {
    run.runtime = runtime, run.no_sync = no_sync;
    return 1e-9 * static_cast<double>(torch::live_memory(run, 2).steps[1].after_forward) - without;
  };
  for (const Runtime runtime : {Runtime::fsdp1, Runtime::fsdp2}) EXPECT_NEAR(gradients(runtime, true), 52, 0.001);
  EXPECT_NEAR(gradients(Runtime::fsdp1, false), 3.25, 0.001);
  EXPECT_NEAR(gradients(Runtime::fsdp2, false), 3.25 + unit, 0.001) << "and the input of the last reduction";
}

}  // namespace
}  // namespace foreshard::sim
