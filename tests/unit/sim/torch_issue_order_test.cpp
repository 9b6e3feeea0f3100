// The order in which whole models under FSDP1, FSDP2 and DDP issue their collectives around each block's compute: ours
// in the runs whose memory torch_memory_test.cpp compares (tests/golden/issue_order.py), word by word.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "sim/runtimes/torch_prediction.hpp"
#include "sim/validation/live_memory.hpp"

namespace foreshard::sim::torch {
namespace {

using validation::CsvTable;

bool is_all_reduce(const Ran& ran) { return ran.kind == model::OpKind::all_reduce; }

/// DDP's reductions by their elements, as the tables have them.
std::string with_elements(const std::string& text, const std::vector<Ran>& all) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  auto reduction = all.begin();
  for (std::string word; stream >> word; words.push_back(word)) {
    if (!word.starts_with("AR:")) continue;
    reduction = std::find_if(reduction, all.end(), is_all_reduce);
    word = fmt::format("AR:{}", std::llround(reduction++->bytes) / size_bytes(DType::f32));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// What a run issues in its last step.
std::string order_of(const TorchRun& run, int steps) {
  static const Cluster cluster = read_cluster("dgx-a100");
  GpuKernels kernels(cluster, {}, run.wrap.world, run.wrap.replicas);
  Gpu gpu(kernels, {});
  gpu.keep_trace();
  TorchSteps training(run, gpu);
  for (int i = 0; i < steps; ++i) training.step();
  const std::string text = order_text(gpu.ran(), gpu.micro_batch_starts());
  return run.runtime == Runtime::ddp ? with_elements(text, gpu.ran()) : text;
}

/// The tables' DDP has one rank, whose reducer goes through the same buckets as any. Of FSDP left out are groups of one
/// rank, which issue nothing here, and units that are no blocks, which have other names here.
int expect_same_order(const char* file, std::size_t rows) {
  const CsvTable table = validation::read_csv(std::string(FORESHARD_GOLDEN_DIR "/") + file);
  EXPECT_EQ(table.rows.size(), rows);
  int compared = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    TorchRun run = validation::live_memory_run(table, row);
    if (run.runtime == Runtime::ddp) run.wrap.replicas = 2;
    if (run.wrap.world * run.wrap.replicas == 1 || run.wrap.blocks_per_unit != 1) continue;
    ++compared;
    EXPECT_EQ(order_of(run, validation::live_memory_step(table, row)), table.rows[row][table.column("order")])
        << fmt::format("row {}: {}", row + 1, fmt::join(table.rows[row], ","));
  }
  return compared;
}

TEST(TorchIssueOrder, IsPyTorchsWithLora) { EXPECT_EQ(expect_same_order("lora_memory.csv", 63), 58); }

TEST(TorchIssueOrder, IsPyTorchsForT5WithAHeadOfItsOwn) { EXPECT_EQ(expect_same_order("t5_untied_memory.csv", 9), 9); }

}  // namespace
}  // namespace foreshard::sim::torch
