// Tables of published runs: reading them, and what their words mean.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "sim/validation/command.hpp"
#include "sim/validation/csv_table.hpp"
#include "sim/validation/predict_run.hpp"
#include "sim/validation/published_run.hpp"

namespace foreshard::sim::validation {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class Csv : public ::testing::Test {
 protected:
  Csv() { fs::create_directories(folder_); }
  ~Csv() override { fs::remove_all(folder_); }
  std::string file(const std::string& text) const {
    std::ofstream(path()) << text;
    return path();
  }
  std::string path() const { return (folder_ / "t.csv").string(); }
  static std::string refusal_of(const std::function<void()>& action) {
    try {
      action();
    } catch (const InputError& error) {
      return error.what();
    }
    return "nothing was refused";
  }
  fs::path folder_ = fs::temp_directory_path() / ("foreshard-csv-" + std::to_string(getpid()));
};

TEST_F(Csv, QuotesCommasAndLineBreaksComeBack) {
  const CsvTable table{.path = path(), .header = {"a", "b"}, .rows = {{"1,5", "say \"x\""}, {"two\nlines", ""}}};
  write_csv(path(), table);
  const CsvTable again = read_csv(path());
  EXPECT_EQ(again.header, table.header);
  EXPECT_EQ(again.rows, table.rows);
}

TEST_F(Csv, MayBeginWithAByteOrderMark) {
  EXPECT_EQ(read_csv(file("\xEF\xBB\xBF"
                          "a,b\n1,2\n"))
                .header,
            (std::vector<std::string>{"a", "b"}));
}

TEST_F(Csv, WhatIsWrongIsNamed) {
  EXPECT_THAT(refusal_of([&] { read_csv(file("a,b\n1,2\n3\n")); }), AllOf(HasSubstr("row 2"), HasSubstr("1 fields")));
  EXPECT_THAT(refusal_of([&] { read_csv(file("")); }), HasSubstr("is empty"));
  EXPECT_THAT(refusal_of([&] { read_csv(file("a,b\n1,\"2\n")); }), HasSubstr("line 2"));
  EXPECT_THAT(refusal_of([&] { read_csv((folder_ / "none.csv").string()); }), HasSubstr("cannot be read"));
  EXPECT_THAT(refusal_of([&] { read_csv(folder_.string()); }), HasSubstr("is a folder"));
  EXPECT_THAT(refusal_of([&] { read_csv(file("a,b\n1,5 \xD7 3\n")); }), AllOf(HasSubstr("line 2"), HasSubstr("0xD7")));
  EXPECT_THAT(refusal_of([&] { read_csv(file("layers,b\n1,2\n")).column("layer"); }),
              HasSubstr("Did you mean `layers`"));
}

class Published : public Csv {
 protected:
  static PublishedRow row() {
    PublishedRow row;
    row.model = "Llama-3-8B";
    row.params_b = 8.03;
    row.layers = 32, row.d_model = 4096, row.heads = 32, row.kv_heads = 8, row.d_ff = 14336, row.vocab = 128256;
    row.seq_len = 8192, row.gpu = "H100", row.n_gpus = 64, row.gpus_per_node = 8, row.micro_batch_per_gpu = 2;
    row.strategy = "FSDP2 full shard", row.precision = "bf16", row.plain_dp = "yes";
    return row;
  }
  static PublishedRun run_of(const PublishedRow& row) { return std::get<PublishedRun>(interpret(row)); }
  static std::string skip_of(const PublishedRow& row) { return std::get<Skip>(interpret(row)).reason; }
};

/// A table of one row that says nothing but the number of layers.
std::string table_with(const std::string& layers) {
  return "source,ref,model,params_b,layers,d_model,heads,kv_heads,d_ff,vocab,seq_len,gpu,gpu_mem_gb,n_gpus,gpus_per_"
         "node,"
         "interconnect,strategy,reshard_after_forward,tp,pp,cp,precision,micro_batch_per_gpu,grad_accum,global_batch_"
         "tokens,"
         "activation_ckpt,offload,compile_or_flash,tokens_per_s_per_gpu,step_time_s,tflops_per_gpu,mfu_pct,hfu_pct,"
         "peak_mem_gib,peak_mem_kind,oom,notes,peak_mem_as_printed,plain_dp,exclude\n"
         ",,,," +
         layers + std::string(35, ',') + "\n";
}

TEST_F(Published, ANumberThatIsNoneIsNamedWithItsPlace) {
  const auto refusal = [&](const std::string& layers) {
    return refusal_of([&] { published_rows(read_csv(file(table_with(layers)))); });
  };
  EXPECT_THAT(refusal("many"), AllOf(HasSubstr("row 1, layers is 'many'"), HasSubstr("expected a number")));
  EXPECT_THAT(refusal("-3"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("nan"), HasSubstr("expected a number"));
  EXPECT_THAT(refusal("2.5"), HasSubstr("expected a whole number"));
  EXPECT_THAT(refusal("1e15"), HasSubstr("expected a whole number of at most 1048576"));
  EXPECT_LT(refusal(std::string(100000, 'x')).size(), 300U);
}

TEST_F(Published, AZeroIsNoSize) {
  EXPECT_EQ(published_rows(read_csv(file(table_with("0")))).front().layers, std::nullopt);
  EXPECT_EQ(published_rows(read_csv(file(table_with("")))).front().layers, std::nullopt);
  EXPECT_EQ(published_rows(read_csv(file(table_with("32")))).front().layers, 32);
}

TEST_F(Published, NoTableIsOverwrittenByItsPredictions) {
  const auto refusal = [&](std::vector<std::string> arguments) {
    std::vector<const char*> argv{"validate"};
    for (const std::string& argument : arguments) argv.push_back(argument.c_str());
    return refusal_of([&] { validate_command(static_cast<int>(argv.size()), argv.data()); });
  };
  const std::string text = table_with("32"), table = file(text);
  EXPECT_THAT(refusal({"--out=" + folder_.string(), table}), HasSubstr("would be overwritten"));
  EXPECT_EQ(fs::file_size(table), text.size());
  fs::create_directories(folder_ / "a");
  std::ofstream(folder_ / "a" / "t.csv") << text;
  EXPECT_THAT(refusal({"--out=" + (folder_ / "out").string(), table, (folder_ / "a" / "t.csv").string()}),
              HasSubstr("would both be written to"));
}

TEST_F(Published, RowsThatCannotBeUsedSayWhy) {
  PublishedRow other = row();
  other.plain_dp = "no";
  EXPECT_EQ(skip_of(other), "not plain data parallelism");
  other = row();
  other.exclude = "accident";
  EXPECT_EQ(skip_of(other), "excluded: accident");
  other.exclude = "memory: of another step";
  EXPECT_EQ(run_of(other).layers, 32);
  other = row();
  other.layers.reset(), other.vocab.reset();
  EXPECT_EQ(skip_of(other), "not stated: layers, vocab");
}

TEST_F(Published, WordsOfStrategiesAreRead) {
  const auto read = [](const std::string& strategy) {
    PublishedRow r = row();
    r.strategy = strategy;
    return run_of(r);
  };
  EXPECT_EQ(read("FSDP2 full shard").runtime, Runtime::pytorch_fsdp2);
  EXPECT_EQ(read("fsdp full_shard").shard_degree, 64);
  EXPECT_EQ(read("HSDP F=16 (inferred)").shard_degree, 16);
  EXPECT_EQ(read("HSDP (HYBRID_SHARD)").shard_degree, 8);
  EXPECT_EQ(read("ZeRO-1 (Megatron-DeepSpeed)").stage, ZeroStage::optimizer);
  EXPECT_EQ(read("FSDP2 ZeRO-2").stage, ZeroStage::gradients);
  EXPECT_EQ(read("DDP").shard_degree, 1);
}

TEST_F(Published, WordsOfNetworksAreRead) {
  const auto read = [](const std::string& interconnect) {
    PublishedRow r = row();
    r.interconnect = interconnect;
    return run_of(r).node_gbit_per_s.value_or(0);
  };
  EXPECT_EQ(read("1600 Gbps node-node RoCE (stated)"), 1600);
  EXPECT_EQ(read("NVLink; 8 x 200 Gb/s HDR IB per node"), 1600);
  EXPECT_EQ(read("NVLink; 400 Gb/s CX-7 per GPU"), 3200);
  EXPECT_EQ(read("3.2 Tbps"), 3200);
  EXPECT_EQ(read("NVLink; Omni-Path 100 Gbps x4 between nodes"), 400);
  EXPECT_EQ(read("NVLink"), 0) << "not printed";
}

TEST_F(Published, AccumulationFollowsFromTheGlobalBatchWhereItIsNotPrinted) {
  PublishedRow r = row();
  r.global_batch_tokens = 64 * 2 * 8192 * 4;
  EXPECT_EQ(run_of(r).micro_batches, 4);
  r.grad_accum = 3;
  EXPECT_EQ(run_of(r).micro_batches, 3);
}

TEST_F(Published, ThroughputComesFromWhatIsPrinted) {
  PublishedRow r = row();
  EXPECT_FALSE(measured_tokens_per_s(r, run_of(r), 989));
  const double flops = 6 * 8.03e9 + 12.0 * 32 * 4096 * 8192;
  r.mfu_pct = 40;
  EXPECT_NEAR(*measured_tokens_per_s(r, run_of(r), 989), 0.4 * 989e12 / flops, 1e-6);
  r.step_time_s = 4;
  EXPECT_DOUBLE_EQ(*measured_tokens_per_s(r, run_of(r), 989), 2 * 8192 / 4.0);
  r.tokens_per_s_per_gpu = 5000;
  EXPECT_EQ(*measured_tokens_per_s(r, run_of(r), 989), 5000);
}

/// Printed together by fms-fsdp, of 96 H100: 70 B parameters, 800 tokens/s, 34 %; 890, 38 %. 7 B, 9600, 46 %.
TEST_F(Published, UtilisationIsReadAsItsSourceCounts) {
  PublishedRow r = row();
  r.notes = "MFU = model FLOPs with PaLM/nanoGPT style formula";
  const auto tokens = [&](double mfu_pct) {
    r.mfu_pct = mfu_pct;
    return *measured_tokens_per_s(r, run_of(r), 989);
  };
  r.params_b = 69, r.layers = 80, r.d_model = 8192, r.heads = 64, r.kv_heads = 8, r.seq_len = 4096;
  EXPECT_NEAR(tokens(34), 800, 0.02 * 800);
  EXPECT_NEAR(tokens(38), 890, 0.02 * 890);
  r.params_b = 6.74, r.layers = 32, r.d_model = 4096, r.heads = 32, r.kv_heads = 32;
  EXPECT_NEAR(tokens(46), 9600, 0.02 * 9600);
}

/// Composer at 22d724c8 (torch 1.13) and later, its defaults: BACKWARD_POST; DEFAULT gathers in fp32 at first.
TEST_F(Published, ComposersDefaultsAreRead) {
  PublishedRow r = row();
  r.source = "mosaicml examples LLM throughput", r.compile_or_flash = "flash attention (repo), torch 1.13 era";
  r.strategy = "fsdp full_shard", r.precision = "amp_bf16 / fsdp mixed_precision DEFAULT";
  PublishedRun run = run_of(r);
  EXPECT_TRUE(run.autocasts && run.evaluates_metrics);
  EXPECT_FALSE(run.prefetches_in_backward || run.stops_recomputation_early);
  EXPECT_EQ(run.gather_bytes, 4);
  EXPECT_EQ(run.reduce_bytes, 2);
  EXPECT_EQ(run.attention, AttentionKind::flash1);
  r.source = "llm-foundry benchmarking", r.compile_or_flash = "attn_impl flash/triton (repo default)";
  run = run_of(r);
  EXPECT_TRUE(run.stops_recomputation_early);
  EXPECT_FALSE(run.autocasts || run.evaluates_metrics || run.prefetches_in_backward);
  EXPECT_EQ(run.gather_bytes, 2);
  EXPECT_EQ(run.attention, AttentionKind::triton);
  r.precision = "amp_bf16 / fsdp mixed_precision PURE";
  EXPECT_FALSE(run_of(r).stops_recomputation_early);
}

TEST_F(Published, KernelsAndCompilersAreRead) {
  const auto read = [](const std::string& kernels) {
    PublishedRow r = row();
    r.compile_or_flash = kernels;
    return run_of(r);
  };
  EXPECT_TRUE(read("torch.compile; SDPA").compiled);
  EXPECT_FALSE(read("no compile; SDPA flash v2").compiled);
  EXPECT_EQ(read("torch.compile; SDPA").attention, AttentionKind::flash2);
  EXPECT_EQ(read("XLA; flash attention; Transformer Engine").attention, AttentionKind::cudnn);
  EXPECT_TRUE(read("Thunder; executors sdpa").compiled);
  EXPECT_FALSE(read("Thunder; executors sdpa").plans_saving);
  PublishedRow tune = row();
  tune.notes = "cumulative step: + packed dataset; max sequence length 4096";
  EXPECT_FALSE(run_of(tune).compiled);
  tune.notes = "cumulative step: + chunked cross entropy; packed before";
  EXPECT_TRUE(run_of(tune).compiled);
}

TEST_F(Published, WhatIsRecomputedFollowsFromBothUtilisations) {
  PublishedRow r = row();
  r.activation_ckpt = "selective";
  EXPECT_TRUE(run_of(r).recomputes_selected);
  r.mfu_pct = 30, r.hfu_pct = 35;
  EXPECT_FALSE(run_of(r).recomputes_selected);
  EXPECT_NEAR(run_of(r).recomputed, 0.5, 1e-12);
  r.activation_ckpt = "";
  EXPECT_FALSE(run_of(r).recomputation_stated);
}

TEST_F(Published, WhatIsNotPrintedIsWhatTheSourceUsesElsewhere) {
  PublishedRow r = row();
  r.source = "pytorch/ao";
  EXPECT_EQ(run_of(r).gpu, "h100-sxm-96gb");
  r.gpu_mem_gb = 80;
  EXPECT_EQ(run_of(r).gpu, "H100");
  r.source = "IST-DASLab/llmq", r.seq_len = 1024, r.n_gpus = 4, r.micro_batch_per_gpu = 4;
  EXPECT_EQ(run_of(r).micro_batches, 32);
  EXPECT_EQ(run_of(r).runtime, Runtime::hand_written);
  r = row();
  r.gpu = "GB200", r.gpus_per_node = 4, r.interconnect = "NVLink/NVL72 + IB";
  EXPECT_EQ(run_of(r).gpus_per_node, 64);
  r = row();
  r.strategy = "DP 64 x FSDP 1 x TP 1";
  EXPECT_EQ(run_of(r).stage, ZeroStage::none);
  r.strategy = "DP 1 x FSDP 64 x TP 1";
  EXPECT_EQ(run_of(r).shard_degree, 64);
}

TEST_F(Published, GradientsAreReducedInF32WhereItIsSaidOrUsual) {
  const auto read = [](const std::string& strategy, const std::string& precision) {
    PublishedRow r = row();
    r.strategy = strategy, r.precision = precision;
    return run_of(r).reduce_bytes;
  };
  EXPECT_EQ(read("FSDP1 full shard", "bf16 mixed (fp32 AdamW states per blog)"), 2);
  EXPECT_EQ(read("FSDP1 full shard", "bf16 (fp32 reduce-scatter)"), 4);
  EXPECT_EQ(read("FSDP2 full shard", "bf16"), 4) << "as torchtitan does";
}

/// Llama-3-8B: 7.5 B parameters in matrices; without gates 5.7 B, with one table 7.0 B.
TEST_F(Published, MatricesOfABlockFollowFromTheParameters) {
  PublishedRow r = row();
  r.model = "Somebody's 8B";
  EXPECT_TRUE(run_of(r).gated_mlp);
  EXPECT_FALSE(run_of(r).tied_head);
  r.params_b = 7.5;
  EXPECT_TRUE(run_of(r).gated_mlp && run_of(r).tied_head);
  r.params_b = 6.15;
  EXPECT_FALSE(run_of(r).gated_mlp);
  r.params_b.reset();
  EXPECT_FALSE(run_of(r).gated_mlp) << "the name says nothing";
  r = row();
  r.model = "MPT-125m", r.params_b = 0.17407;  // 85 M in blocks, 39 M in one table, 50 M positions
  r.layers = 12, r.d_model = 768, r.heads = 12, r.kv_heads = 12, r.d_ff = 3072, r.vocab = 50368, r.seq_len = 65536;
  EXPECT_FALSE(run_of(r).gated_mlp);
  EXPECT_TRUE(run_of(r).tied_head);
}

/// Best measured products of MI300X: 51 % of its peak; of H100 80 %, of which training reaches 86 %.
TEST_F(Published, OfAGpuWithoutRunsProductsAreLikeItsBest) {
  PublishedRow r = row();
  r.n_gpus = 1;
  const closed_form::Profile profile;
  const double h100 = predicted_tokens_per_s(run_of(r), profile);
  r.gpu = "MI300X";
  const double mi300x = predicted_tokens_per_s(run_of(r), profile);
  EXPECT_GT(mi300x, h100);
  EXPECT_LT(mi300x, 1.25 * h100) << "though its peak is 1.32 times as high";
}

TEST_F(Published, AdaptersAreThoseOfTheRecipes) {
  PublishedRow r = row();
  r.notes = "LoRA r=4; four GPUs";
  EXPECT_EQ(run_of(r).lora_rank, 4);
  EXPECT_TRUE(run_of(r).lora && run_of(r).lora_of_all_products);
  r.source = "Lightning-AI/litgpt", r.notes = "qlora.yaml, bnb.nf4-dq";
  EXPECT_EQ(run_of(r).lora_rank, 32);
  EXPECT_TRUE(run_of(r).four_bit_base && run_of(r).four_bit_scales);
  EXPECT_FALSE(run_of(r).lora_of_all_products);
}

TEST_F(Published, OnlyZeroGathersParametersAfterTheUpdate) {
  const closed_form::Profile profile;
  const auto tokens_per_s = [&](const std::string& strategy) {
    PublishedRow r = row();
    r.strategy = strategy, r.precision = "bf16 mixed", r.activation_ckpt = "full";
    return predicted_tokens_per_s(run_of(r), profile);
  };
  EXPECT_GT(tokens_per_s("FSDP1 SHARD_GRAD_OP"), tokens_per_s("DeepSpeed ZeRO-2"));
  EXPECT_GE(tokens_per_s("FSDP1 SHARD_GRAD_OP"), tokens_per_s("FSDP1 full shard"));
}

TEST_F(Published, CastsAreThoseOfTheSoftware) {
  const auto read = [](const std::string& kernels, const std::string& precision) {
    PublishedRow r = row();
    r.compile_or_flash = kernels, r.precision = precision;
    return run_of(r).casts;
  };
  EXPECT_EQ(read("torch.compile", "float8 tensorwise"), Casts::tensorwise);
  EXPECT_EQ(read("torch.compile", "float8 rowwise"), Casts::rowwise);
  EXPECT_EQ(read("XLA; Transformer Engine", "TE FP8"), Casts::fused);
}

/// 70 B parameters, 16 bytes each, on nodes of 8 × 80 GB; activations of 8192 tokens a GPU.
TEST_F(Published, WhatARowLeavesOpenIsWhatFits) {
  const closed_form::Profile profile;
  PublishedRow r = row();
  r.layers = 80, r.d_model = 8192, r.heads = 64, r.d_ff = 28672, r.vocab = 32000, r.seq_len = 4096, r.n_gpus = 464;
  r.strategy = "FSDP/HSDP (per-row choice not restated)";
  EXPECT_EQ(run_of(r).shard_degree, 8);
  const PublishedRun large = completed(run_of(r), profile);
  EXPECT_EQ(large.shard_degree, 464);
  EXPECT_EQ(large.recomputed, 1);
  r.layers = 32, r.d_model = 4096, r.heads = 32, r.d_ff = 11008;
  const PublishedRun small = completed(run_of(r), profile);
  EXPECT_EQ(small.shard_degree, 8);
  EXPECT_EQ(small.recomputed, 0);
}

}  // namespace
}  // namespace foreshard::sim::validation
