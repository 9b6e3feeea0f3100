#include "sim/cost/gpu_attention.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "csv_rows.hpp"
#include "gpus.hpp"
#include "sim/cost/gpu_memory.hpp"

namespace foreshard::sim::cost {
namespace {

using test::a100, test::b200, test::h100;

constexpr AttentionKernel kernels[] = {AttentionKernel::unfused, AttentionKernel::fa1, AttentionKernel::triton,
                                       AttentionKernel::fa2,     AttentionKernel::fa3, AttentionKernel::cudnn};

/// 16k tokens and a width of 2048, as the published charts have it.
Attention of_chart(std::int64_t seq, std::int64_t head, bool causal) {
  return {16384 / seq, 2048 / head, seq, head, causal};
}

double tflops(const GpuRates& gpu, const Attention& a, AttentionKernel kernel, bool backward = false) {
  const double seconds = attention_seconds(gpu_profile(), gpu, a, kernel, backward, Running::in_step);
  return 1e-12 * attention_flops(a, backward) / seconds;
}

// By hand: 4·2·16·1024²·64 = 8,589,934,592; half if causal; two and a half times as many backward.
TEST(GpuAttention, CountsFlopsAsPublished) {
  EXPECT_DOUBLE_EQ(attention_flops({2, 16, 1024, 64, false}, false), 8'589'934'592);
  EXPECT_DOUBLE_EQ(attention_flops({2, 16, 1024, 64, true}, false), 4'294'967'296);
  EXPECT_DOUBLE_EQ(attention_flops({2, 16, 1024, 64, true}, true), 10'737'418'240);
}

// By hand: 256 · 257 / 2 + 768 · 256 pairs of a head, less half of the diagonal as without a window; 4 · 64 FLOPs a
// pair.
TEST(GpuAttention, CountsFlopsOfAWindow) {
  Attention windowed{2, 16, 1024, 64, true};
  windowed.window = 256;
  const double pairs = 256.0 * 257 / 2 + 768 * 256 - 512;
  EXPECT_DOUBLE_EQ(attention_flops(windowed, false), 32 * 4 * 64 * pairs);
  EXPECT_DOUBLE_EQ(attention_flops(windowed, true), 2.5 * 32 * 4 * 64 * pairs);
  windowed.window = 1024;
  EXPECT_EQ(attention_flops(windowed, false), attention_flops({2, 16, 1024, 64, true}, false));
  windowed.window = 256, windowed.masked = true;
  EXPECT_EQ(attention_flops(windowed, false), attention_flops({2, 16, 1024, 64, false}, false)) << "all pairs";
}

/// As the causal attention of sequences whose queries see as many keys, one with as many tokens.
TEST(GpuAttention, WithinAWindowTakesTheTimeOfShorterSequences) {
  for (const AttentionKernel kernel : {AttentionKernel::fa2, AttentionKernel::fa3, AttentionKernel::cudnn}) {
    Attention windowed{1, 16, 65536, 128, true};
    windowed.window = 2048;
    const Attention shorter{16, 16, 4096, 128, true};
    for (const bool backward : {false, true}) {
      const auto seconds = [&](const Attention& a) {
        return attention_seconds(gpu_profile(), h100, a, kernel, backward, Running::in_step);
      };
      EXPECT_NEAR(seconds(windowed) / seconds(shorter), 1, 0.03) << name_of(kernel);
    }
  }
}

TEST(GpuAttention, KernelsOnH100AreAsMeasured) {
  std::map<std::string, AttentionKernel> names{{"FA2", AttentionKernel::fa2},
                                               {"FA3", AttentionKernel::fa3},
                                               {"cuDNN", AttentionKernel::cudnn},
                                               {"Triton", AttentionKernel::triton},
                                               {"standard PyTorch", AttentionKernel::unfused}};
  std::map<std::string, std::vector<double>> errors;
  for (const auto& row : test::csv_rows("flash_attention.csv")) {
    if (row.at("dtype") != "fp16" || row.at("gpu") != "H100-SXM5") continue;
    const bool causal = row.at("causal") == "yes";
    const Attention a = of_chart(std::stol(row.at("seq_len")), std::stol(row.at("head_dim")), causal);
    const double predicted = tflops(h100, a, names.at(row.at("kernel")));
    errors[row.at("kernel")].push_back(std::abs(predicted / std::stod(row.at("TFLOPS")) - 1));
  }
  for (const auto& [kernel, all] : errors) {
    double sum = 0;
    for (const double error : all) sum += error / static_cast<double>(all.size());
    fmt::print("{:<18}{:>3} points, mean error {:.1f} %\n", kernel, all.size(), 100 * sum);
    EXPECT_LT(sum, kernel == "standard PyTorch" ? 0.15 : 0.04) << kernel;
  }
  EXPECT_EQ(errors.size(), 5U);
}

// Forward and backward of FlashAttention-2 on A100: 50 to 73 % of 312 TFLOPS; of the first version 25 to 40 %
// (arXiv 2307.08691).
TEST(GpuAttention, VersionsOnA100AreInThePublishedRanges) {
  const Attention a = of_chart(16384, 128, false);
  const auto together = [&](AttentionKernel kernel) {
    double seconds = 0;
    for (const bool backward : {false, true})
      seconds += attention_seconds(gpu_profile(), a100, a, kernel, backward, Running::in_step);
    return (attention_flops(a, false) + attention_flops(a, true)) / seconds / a100.half_flops;
  };
  EXPECT_GT(together(AttentionKernel::fa2), 0.50);
  EXPECT_LT(together(AttentionKernel::fa2), 0.73);
  EXPECT_GT(together(AttentionKernel::fa1), 0.25);
  EXPECT_LT(together(AttentionKernel::fa1), 0.40);
}

TEST(GpuAttention, TimeGrowsWithLengthAndIsNeverFasterThanThePeak) {
  for (const GpuRates* gpu : {&a100, &h100, &b200})
    for (const AttentionKernel kernel : kernels)
      for (std::int64_t seq = 128; seq <= 65536; seq *= 2) {
        const auto seconds = [&](std::int64_t length) {
          return attention_seconds(gpu_profile(), *gpu, {1, 16, length, 128, true}, kernel, false, Running::isolated);
        };
        EXPECT_LT(seconds(seq), seconds(2 * seq));
        EXPECT_GT(seconds(seq), attention_flops({1, 16, seq, 128, true}, false) / gpu->half_flops);
      }
}

TEST(GpuAttention, SaysWhenARateIsAnotherArchitectures) {
  std::string source;
  attention_seconds(gpu_profile(), b200, {1, 16, 4096, 128}, AttentionKernel::cudnn, false, Running::in_step, &source);
  EXPECT_TRUE(source.starts_with("assumed: as sm_90")) << source;
  attention_seconds(gpu_profile(), h100, {1, 16, 4096, 128}, AttentionKernel::cudnn, false, Running::in_step, &source);
  EXPECT_TRUE(source.starts_with("fitted to tests/data/flash_attention.csv")) << source;
}

// By hand: 10^10 bytes at 85 % of 3350 GB/s; 25 MB lie in L2 and take 1/2.5 of their time.
TEST(GpuMemory, BytesTakeTheTimeOfTheirMemory) {
  const auto seconds = [](double bytes) { return memory_bound_seconds(gpu_profile(), h100, bytes, Running::in_step); };
  EXPECT_NEAR(seconds(1e10), 1e10 / (0.85 * 3350e9), 1e-6);
  EXPECT_NEAR(seconds(25e6), 25e6 / (0.85 * 3350e9) / 2.5, 1e-12);
  EXPECT_DOUBLE_EQ(seconds(0), gpu_profile().memory_start_s.value);
  for (double bytes = 1e3; bytes < 1e11; bytes *= 1.3) EXPECT_LE(seconds(bytes), seconds(1.3 * bytes));
}

// AdamW: parameter and two moments read and written, gradient read: 28 bytes; SGD without momentum 12.
TEST(GpuMemory, AnUpdateMovesItsState) {
  EXPECT_DOUBLE_EQ(update_bytes(1e6, 2), 28e6);
  EXPECT_DOUBLE_EQ(update_bytes(1e6, 0), 12e6);
}

}  // namespace
}  // namespace foreshard::sim::cost
