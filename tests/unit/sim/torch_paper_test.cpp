// The FSDP paper's GPT-175B, event by event, against its figures 6b, 7b and 8b (arXiv 2304.11277; the table is
// digitised from them, TFLOPS of a GPU within 0.3, GB of 10⁹ bytes within 0.5). Nothing was fitted to them: kernels and
// network come from tables of single ones, what products lose in a step from other published runs, and what FSDP1 of
// that time allocates from the source of PyTorch 1.13. Where the paper says nothing: minGPT with dropout, AdamW tensor
// by tensor, gradients set to zero instead of dropped (its memory grows by 16 bytes a parameter with 1/F).
#include <gtest/gtest.h>

#include "csv_rows.hpp"
#include "sim/flop_conventions.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::torch {
namespace {

/// The software of the paper. All 80 GB being reserved (its section 5.4), 80 GB are what can be.
void of_the_time(TorchJob& job) {
  job.run.traits.early_stop = false, job.run.traits.early_fsdp1 = true;
  job.run.loop = UpdateLoop::one_by_one, job.run.keeps_gradients = true;
  job.software.nccl = {2, 10, 3}, job.software.records_collectives = true, job.software.lazy_loading = false;
  job.allocator.memory_fraction = 0.9413;
}

TorchJob gpt_175b(int gpus, int batch, bool prefetch) {
  TorchJob job;
  TorchRun& run = job.run;
  run.runtime = Runtime::fsdp1, run.batch = {batch, 2048}, run.recompute = true;
  run.model = Decoder{.family = Decoder::Family::mingpt,
                      .width = 12288,
                      .ffn = 4 * 12288,
                      .layers = 96,
                      .heads = 96,
                      .kv_heads = 96,
                      .vocab = 50000,
                      .positions = 2048,
                      .tied = false,
                      .dropout = true};
  run.wrap.world = gpus, run.wrap.reduce = DType::bf16;
  run.wrap.backward_prefetch = prefetch ? BackwardPrefetch::pre : BackwardPrefetch::none;
  of_the_time(job);
  return job;
}

TorchJob t5_11b(int gpus, bool limits) {
  TorchJob job;
  TorchRun& run = job.run;
  run.runtime = Runtime::fsdp1, run.batch = {2, 512};
  run.model = T5{.width = 1024,
                 .head_width = 128,
                 .ffn = 65536,
                 .layers = 24,
                 .heads = 128,
                 .vocab = 32128,
                 .dropout = true,
                 .written_out = true,
                 .returns_cache = true};
  run.wrap.world = gpus, run.wrap.reduce = DType::bf16, run.wrap.limits_gathers = limits;
  of_the_time(job);
  job.software.step_host_s = 4.23;
  return job;
}

double off(const std::string& published, double predicted) { return predicted / std::stod(published) - 1; }

TEST(TorchPaper, Gpt175bIsAsTheFiguresSay) {
  const Cluster cluster = read_cluster("fsdp-paper");
  int rows = 0;
  for (const auto& row : test::csv_rows("fsdp_paper_gpt175b.csv")) {
    const int gpus = std::stoi(row.at("gpus")), batch = std::stoi(row.at("batch"));
    const TorchPrediction prediction = predict(gpt_175b(gpus, batch, row.at("prefetch") == "pre"), cluster);
    ASSERT_EQ(prediction.out_of_memory, "");
    const AllocatorPeaks& peaks = prediction.peaks.back();
    const double tflops = megatron_flops(batch, 2048, 96, 12288, 50000, true) / prediction.steady.seconds / 1e12;
    const bool collapses = gpus == 128 && batch == 2;
    SCOPED_TRACE(row.at("gpus") + " GPUs, batch " + row.at("batch") + ", prefetch " + row.at("prefetch"));
    EXPECT_EQ(peaks.retries > 0, collapses);
    EXPECT_LT(std::abs(off(row.at("tflops"), tflops)), collapses ? 0.05 : 0.02) << tflops;
    if (collapses) {
      EXPECT_NEAR(prediction.steady.backward_s / prediction.steady.seconds, 0.8556, 0.02);
    }
    ++rows;
    if (row.at("allocated_gb").empty()) continue;
    EXPECT_LT(std::abs(off(row.at("allocated_gb"), 1e-9 * static_cast<double>(peaks.allocated))), 0.06);
    EXPECT_LT(std::abs(off(row.at("active_gb"), 1e-9 * static_cast<double>(peaks.active))), 0.05);
    EXPECT_LT(std::abs(off(row.at("reserved_gb"), 1e-9 * static_cast<double>(peaks.reserved))), 0.05);
  }
  EXPECT_EQ(rows, 13);
}

/// Figure 6c: the largest batch that fits without recomputation; without the limiter the host gathers ahead, and then
/// the allocator retries. Of the limited step 4.23 s are not explained; they are taken from its 5.02 s on 32 GPUs.
TEST(TorchPaper, T5WithoutTheLimiterIsSlowedByRetries) {
  const Cluster cluster = read_cluster("fsdp-paper");
  for (const auto& [gpus, published] : {std::pair{16, 2.23}, {32, 3.05}}) {
    const TorchPrediction limited = predict(t5_11b(gpus, true), cluster), free = predict(t5_11b(gpus, false), cluster);
    EXPECT_GT(free.peaks.back().retries, limited.peaks.back().retries);
    EXPECT_NEAR(free.steady.seconds / limited.steady.seconds / published, 1, 0.1) << gpus;
  }
}

}  // namespace
}  // namespace foreshard::sim::torch
