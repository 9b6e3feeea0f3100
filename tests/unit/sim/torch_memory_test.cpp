// Live bytes of PyTorch FSDP around Hugging Face models, against torch 2.15.0 and transformers 5.24.0 run on fake
// tensors (tests/golden/make_fsdp_memory.py): gpt2, gpt2-xl, Llama-2-7B, Llama-3-8B at 2 to 64 ranks, and models, world
// sizes and settings that the table does not hold. Every number is the truth to the byte.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "sim/runtimes/torch_step.hpp"

namespace foreshard::sim::torch {
namespace {

using Family = Decoder::Family;

/// Prefetch and micro-batches, where the table has columns for them.
void read_settings(const std::vector<std::string>& w, TorchRun& run) {
  if (w.size() < 21) return;
  if (w[16] == "post") run.wrap.backward_prefetch = BackwardPrefetch::post;
  if (w[16] == "none") run.wrap.backward_prefetch = BackwardPrefetch::none;
  run.wrap.forward_prefetch = w[17] == "True";
  run.wrap.prefetch_depth = std::stoi(w[18]);
  run.micro_batches = std::stoi(w[19]);
  run.no_sync = w[20] == "True";
}

/// The table was made on the CPU's dispatcher with fake tensors; real ones show transformers that it needs no mask.
constexpr EagerTraits fake_tensors{.in_place_sums = false, .attention_mask = true, .norm_stats_f32 = false};
constexpr EagerTraits real_tensors{.in_place_sums = false, .attention_mask = false, .norm_stats_f32 = false};

const std::map<std::string, Decoder> decoders{
    {"gpt2", {Family::gpt2, 768, 3072, 12, 12, 12, 50257, 4096, true}},
    {"gpt2-xl", {Family::gpt2, 1600, 6400, 48, 25, 25, 50257, 4096, true}},
    {"llama2-7b", {Family::llama, 4096, 11008, 32, 32, 32, 32000, 0, false}},
    {"llama3-8b", {Family::llama, 4096, 14336, 32, 32, 8, 128256, 0, false}},
    {"gpt2-tiny", {Family::gpt2, 128, 512, 3, 4, 4, 50257, 4096, true}},
    {"llama-tiny", {Family::llama, 128, 352, 3, 8, 2, 512, 0, true}},
    {"llama-mha", {Family::llama, 128, 352, 2, 8, 8, 512, 0, false}},
    {"qwen2-0.5b", {Family::llama, 896, 4864, 24, 14, 2, 151936, 0, true, true}},
    {"mistral-7b", {Family::llama, 4096, 14336, 32, 32, 8, 32000, 0, false}},
    {"llama3-1b", {Family::llama, 2048, 8192, 16, 32, 8, 128256, 0, true}},
};

struct Row {
  std::string text;
  TorchRun run;
  int step = 0;
  std::int64_t initial = 0;
  StepMemory memory;
};

StepPhase phase_of(const std::string& name) {
  return name == "forward" ? StepPhase::forward : name == "backward" ? StepPhase::backward : StepPhase::update;
}

Row parse(const std::string& line, const EagerTraits& traits) {
  std::vector<std::string> w;
  std::istringstream stream(line);
  for (std::string word; std::getline(stream, word, ',');) w.push_back(word);
  const auto number = [&w](std::size_t i) { return static_cast<std::int64_t>(std::stoll(w.at(i))); };
  Row row;
  row.text = line;
  row.run.runtime = w.at(2) == "fsdp1" ? Runtime::fsdp1 : Runtime::fsdp2;
  row.run.model = decoders.at(w.at(0));
  row.run.batch = {number(6), number(7)};
  row.run.wrap.world = static_cast<int>(number(3));
  row.run.wrap.reshard = w.at(4) == "full_shard";
  row.run.wrap.compute = w.at(5) == "bf16" ? DType::bf16 : DType::f32;
  row.run.recompute = w.at(8) == "full";
  row.run.foreach = w.at(9) == "foreach";
  row.run.traits = traits;
  read_settings(w, row.run);
  row.step = static_cast<int>(number(10));
  row.memory = {number(11), number(13), number(14), phase_of(w.at(12))};
  row.initial = number(15);
  return row;
}

std::vector<Row> rows_of(const std::string& file_name, const EagerTraits& traits) {
  std::vector<Row> rows;
  std::ifstream file(FORESHARD_GOLDEN_DIR "/" + file_name);
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) rows.push_back(parse(line, traits));
  return rows;
}

void expect_exact(const Row& row) {
  const RunMemory memory = live_memory(row.run, row.step);
  const StepMemory& step = memory.steps.back();
  EXPECT_EQ(memory.initial, row.initial) << row.text;
  EXPECT_EQ(step.after_forward, row.memory.after_forward) << row.text;
  EXPECT_EQ(step.peak, row.memory.peak) << row.text;
  EXPECT_EQ(step.peak_in, row.memory.peak_in) << row.text;
  EXPECT_EQ(step.after_step, row.memory.after_step) << row.text;
}

TEST(TorchMemory, EqualsPyTorchInEveryRowOfTheTable) {
  const std::vector<Row> rows = rows_of("fsdp_memory.csv", fake_tensors);
  ASSERT_EQ(rows.size(), 141u);
  for (const Row& row : rows) expect_exact(row);
}

TEST(TorchMemory, EqualsPyTorchAtOddWorldSizesAndOtherModels) {
  const std::vector<Row> rows = rows_of("fsdp_memory_held_out.csv", fake_tensors);
  ASSERT_EQ(rows.size(), 30u);
  for (const Row& row : rows) expect_exact(row);
}

TEST(TorchMemory, EqualsPyTorchWithEveryPrefetchAndMicroBatches) {
  const std::vector<Row> rows = rows_of("fsdp_memory_settings.csv", fake_tensors);
  ASSERT_EQ(rows.size(), 42u);
  for (const Row& row : rows) expect_exact(row);
}

TEST(TorchMemory, EqualsPyTorchOnRealTensorsWithoutAMask) {
  const std::vector<Row> rows = rows_of("fsdp_memory_real.csv", real_tensors);
  ASSERT_EQ(rows.size(), 13u);
  for (const Row& row : rows) expect_exact(row);
}

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
    run.runtime = p.runtime, run.model = decoders.at(p.model), run.batch = p.batch, run.traits = real_tensors;
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
