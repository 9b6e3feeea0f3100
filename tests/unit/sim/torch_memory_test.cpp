// Live bytes of PyTorch FSDP and DDP around Hugging Face models, against torch 2.15.0 and transformers 5.24.0 run on
// fake tensors (tests/golden/make_fsdp_memory.py): gpt2, gpt2-xl, Llama-2-7B, Llama-3-8B at 2 to 64 ranks, and models,
// world sizes and settings that the table does not hold. Every number is the truth to the byte.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <optional>
#include <string>

#include "sim/runtimes/named_models.hpp"
#include "sim/runtimes/torch_step.hpp"
#include "sim/validation/live_memory.hpp"

namespace foreshard::sim::torch {
namespace {

using validation::CsvTable;

/// The table was made on the CPU's dispatcher with fake tensors; real ones show transformers that it needs no mask.
constexpr EagerTraits real_tensors{.in_place_sums = false, .byte_dropout = false, .norm_stats_f32 = false};

/// A row of a table by the names of its columns.
struct Truth {
  const CsvTable& table;
  std::size_t row;
  const std::string& word(const char* column) const { return table.rows[row][table.column(column)]; }
  std::int64_t bytes(const char* column) const { return std::stoll(word(column)); }
  std::string text() const {
    return fmt::format("{} row {}: {}", table.path, row + 1, fmt::join(table.rows[row], ","));
  }
};

void expect_exact(const Truth& truth, const TorchRun& run) {
  constexpr std::string_view phases[] = {"forward", "backward", "update"};
  const RunMemory memory = live_memory(run, validation::live_memory_step(truth.table, truth.row));
  const StepMemory& step = memory.steps.back();
  EXPECT_EQ(memory.initial, truth.bytes("initial_bytes")) << truth.text();
  EXPECT_EQ(step.after_forward, truth.bytes("after_forward_bytes")) << truth.text();
  EXPECT_EQ(step.peak, truth.bytes("peak_bytes")) << truth.text();
  EXPECT_EQ(phases[static_cast<std::size_t>(step.peak_in)], truth.word("peak_in")) << truth.text();
  EXPECT_EQ(step.after_step, truth.bytes("after_step_bytes")) << truth.text();
}

void expect_exact_table(const char* file_name, std::size_t rows, const std::optional<EagerTraits>& traits = {}) {
  const CsvTable table = validation::read_csv(std::string(FORESHARD_GOLDEN_DIR) + "/" + file_name);
  ASSERT_EQ(table.rows.size(), rows);
  for (std::size_t i = 0; i < rows; ++i) {
    TorchRun run = validation::live_memory_run(table, i);
    if (traits) run.traits = *traits;
    expect_exact({table, i}, run);
  }
}

TEST(TorchMemory, EqualsPyTorchInEveryRowOfTheTable) { expect_exact_table("fsdp_memory.csv", 141); }

TEST(TorchMemory, EqualsPyTorchAtOddWorldSizesAndOtherModels) { expect_exact_table("fsdp_memory_held_out.csv", 30); }

TEST(TorchMemory, EqualsPyTorchWithEveryPrefetchAndMicroBatches) { expect_exact_table("fsdp_memory_settings.csv", 42); }

TEST(TorchMemory, EqualsPyTorchOnRealTensorsWithoutAMask) {
  expect_exact_table("fsdp_memory_real.csv", 15, real_tensors);
}

/// OPT, GPT-NeoX, Phi, Gemma, Qwen3, MPT, T5, ViT: tiny ones in many settings, and
/// published sizes.
TEST(TorchMemory, EqualsPyTorchForOtherFamilies) { expect_exact_table("fsdp_memory_families.csv", 67); }

/// Optimizers, types of weights and reductions, replicas, resharding to fewer ranks, clipping, dropout, one rank, many.
TEST(TorchMemory, EqualsPyTorchWithOtherOptions) { expect_exact_table("fsdp_memory_options.csv", 164); }

/// All in the root, or units of several blocks (`fully_shard` of a list).
TEST(TorchMemory, EqualsPyTorchForOtherUnitsThanBlocks) { expect_exact_table("fsdp_memory_wraps.csv", 24); }

/// DistributedDataParallel, run on real tensors of small models.
TEST(TorchMemory, EqualsPyTorchsDdp) { expect_exact_table("ddp_memory.csv", 28, real_tensors); }

/// T5 1.1, as it is loaded where the checkpoint has both tables.
TEST(TorchMemory, EqualsPyTorchForT5WithAHeadOfItsOwn) { expect_exact_table("t5_untied_memory.csv", 9); }

/// Under FSDP1 and DDP on real tensors: FSDP1 does not reshard a frozen root where it sees fake ones.
TEST(TorchMemory, EqualsPyTorchWithLora) { expect_exact_table("lora_memory.csv", 63); }

struct Profiled {
  const char* model;
  Batch batch;
  int world;
  Runtime runtime;
  DType compute;
  bool reshard;
  std::int64_t peak;
};

/// Without a dispatch mode autograd adds gradients in place. torch.profiler (profile_memory) sees every allocation of a
/// real third step on a CPU; peaks above what is allocated when the step begins.
TEST(TorchMemory, EqualsTheProfilersPeakWithoutADispatchMode) {
  for (const Profiled& p : {Profiled{"llama-tiny", {2, 256}, 4, Runtime::fsdp2, DType::bf16, true, 12688136},
                            Profiled{"llama-tiny", {2, 256}, 4, Runtime::fsdp1, DType::f32, true, 20332040 - 594816},
                            Profiled{"llama-mha", {1, 512}, 2, Runtime::fsdp2, DType::bf16, true, 10439432},
                            Profiled{"llama-tiny", {8, 1024}, 4, Runtime::fsdp1, DType::f32, false, 311807496}}) {
    TorchRun run;
    run.runtime = p.runtime, run.model = named_models().at(p.model), run.batch = p.batch, run.traits = real_tensors;
    run.wrap.world = p.world, run.wrap.compute = p.compute, run.wrap.reshard = p.reshard;
    run.traits.in_place_sums = true;
    const RunMemory memory = live_memory(run, 3);
    EXPECT_EQ(memory.steps[2].peak - memory.steps[1].after_step, p.peak) << p.model << ' ' << p.peak;
  }
}

TEST(TorchMemory, SumsGradientsInPlaceOnlyWithoutOtherReferences) {
  LiveBytes live;
  Eager eager(live, {.in_place_sums = true});
  const auto peak_of_sum = [&](bool view) {
    auto leaf = std::make_shared<Leaf>();
    const auto give = [&](const Gradients&) -> Gradients {
      const Storage gradient = eager.empty(1024, DType::f32);
      return {view ? gradient.transposed() : gradient, eager.empty(1024, DType::f32)};
    };
    const Tensor root{eager.empty(1, DType::f32),
                      1,
                      DType::f32,
                      {eager.autograd().record({{nullptr, 0, leaf}, {nullptr, 0, leaf}}, give), 0, nullptr}};
    live.restart();
    eager.autograd().run(root, [] {});
    return (live.peak - live.now) / 4096;
  };
  EXPECT_EQ(peak_of_sum(false), 1);  // two gradients, then one: the leaf keeps one
  EXPECT_EQ(peak_of_sum(true), 2);   // and the sum
}

}  // namespace
}  // namespace foreshard::sim::torch
