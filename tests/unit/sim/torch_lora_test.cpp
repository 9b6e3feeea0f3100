// LoRA on models of Llama's family under PyTorch's FSDP1, FSDP2 and DDP. Its memory is compared with PyTorch's in
// torch_memory_test.cpp, of the same table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "plan/build.hpp"
#include "sim/runtimes/named_models.hpp"
#include "sim/runtimes/torch_model.hpp"
#include "sim/runtimes/torch_prediction.hpp"
#include "sim/validation/live_memory.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

const Cluster& cluster() {
  static const Cluster one = read_cluster("dgx-a100");
  return one;
}

/// What a run issues in one of its steps; DDP's reductions by their elements, as the table has them.
std::string order_of(const TorchRun& run, int steps) {
  GpuKernels kernels(cluster(), {}, run.wrap.world, run.wrap.replicas);
  Gpu gpu(kernels, {});
  gpu.keep_trace();
  TorchSteps training(run, gpu);
  for (int i = 0; i < steps; ++i) training.step();
  const std::string text = order_text(gpu.ran(), gpu.micro_batch_starts());
  if (run.runtime != Runtime::ddp) return text;
  std::vector<std::string> words;
  std::istringstream stream(text);
  auto reduction = gpu.ran().begin();
  for (std::string word; stream >> word; words.push_back(word)) {
    if (!word.starts_with("AR:")) continue;
    reduction = std::find_if(reduction, gpu.ran().end(), [](const Ran& ran) { return ran.kind == OpKind::all_reduce; });
    word = fmt::format("AR:{}", std::llround(reduction++->bytes) / size_bytes(DType::f32));
  }
  return fmt::format("{}", fmt::join(words, " "));
}

/// The table's DDP has one rank, whose reducer goes through the same buckets as any.
TEST(TorchLora, IssuesWhatPyTorchIssues) {
  const validation::CsvTable table = validation::read_csv(FORESHARD_GOLDEN_DIR "/lora_memory.csv");
  ASSERT_EQ(table.rows.size(), 63u);
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    TorchRun run = validation::live_memory_run(table, row);
    if (run.wrap.world == 1 && run.runtime != Runtime::ddp) continue;  // a group of one rank issues nothing here
    if (run.runtime == Runtime::ddp) run.wrap.replicas = 2;
    if (run.wrap.blocks_per_unit != 1) continue;  // its units are named by their first block, ours are counted
    EXPECT_EQ(order_of(run, validation::live_memory_step(table, row)), table.rows[row][table.column("order")])
        << fmt::format("row {}: {}", row + 1, fmt::join(table.rows[row], ","));
  }
}

model::LlamaConfig adapted(std::uint8_t targets) {
  model::LlamaConfig llama = std::get<model::LlamaConfig>(model::preset("byte-llama-tiny"));
  llama.lora = {.rank = 3, .targets = targets};
  return llama;
}

/// q and v; all; each alone.
constexpr std::uint8_t choices[] = {0b101, 0b1111111, 1, 2, 4, 8, 16, 32, 64};

TEST(TorchLora, TrainsWhatTheGraphTrains) {
  for (const std::uint8_t targets : choices) {
    const model::Config config = adapted(targets);
    std::vector<std::string> problems;
    std::int64_t all = 0, trained = 0, graphs = 0;
    for (const auto& unit : unit_shapes(eager_model_of(config, problems)))
      for (const ParameterShape& shape : unit) all += shape.elements(), trained += shape.trained * shape.elements();
    const model::Graph graph = model::build(config, {1, 8});
    for (const model::Parameter& parameter : graph.parameters)
      if (parameter.trainable) graphs += parameter.elements();
    EXPECT_TRUE(problems.empty());
    EXPECT_EQ(all, graph.parameter_count()) << int{targets};
    EXPECT_EQ(trained, graphs) << int{targets};
  }
}

TEST(TorchLora, CountsUsefulFlopsAsOurOwnPlansDo) {
  for (const std::uint8_t targets : choices) {
    const model::Config config = adapted(targets);
    std::vector<std::string> problems;
    TorchRun run;
    run.model = eager_model_of(config, problems), run.batch = {2, 16};
    const FlopBasis torchs = flop_basis(run),
                    ours = sim::flop_basis(plan::build_plan(model::build(config, {2, 16}), {}, {}));
    EXPECT_EQ(torchs.product_weights, ours.product_weights) << int{targets};
    EXPECT_EQ(torchs.gradient_weights, ours.gradient_weights) << int{targets};
  }
}

TorchRun run_of(Runtime runtime, std::uint8_t targets) {
  TorchRun run;
  Decoder model = std::get<Decoder>(named_models().at("llama-tiny"));
  model.lora = {.rank = 8, .targets = targets};
  run.runtime = runtime, run.model = model, run.batch = {2, 64}, run.wrap.world = 4;
  return run;
}

/// FSDP1 computes and reduces gradients of the whole flat parameter, FSDP2 only what is trained.
TEST(TorchLora, Fsdp1ReducesFrozenParametersToo) {
  const auto reduced = [](Runtime runtime) {
    GpuKernels kernels(cluster(), {}, 4, 1);
    Gpu gpu(kernels, {});
    gpu.keep_trace();
    const TorchRun run = run_of(runtime, 0b101);
    TorchSteps training(run, gpu);
    training.step();
    double bytes = 0;
    for (const Ran& ran : gpu.ran())
      if (ran.kind == OpKind::reduce_scatter) bytes += ran.bytes;
    return bytes / size_bytes(DType::f32);
  };
  double all = 0, trained = 0;
  const UnitShapes units = unit_shapes(run_of(Runtime::fsdp1, 0b101).model);
  for (std::size_t at = 1; at < units.size(); ++at)
    for (const ParameterShape& shape : units[at])
      all += double(shape.elements()), trained += shape.trained ? double(shape.elements()) : 0;
  EXPECT_EQ(reduced(Runtime::fsdp1), all);
  EXPECT_EQ(reduced(Runtime::fsdp2), trained);
}

}  // namespace
}  // namespace foreshard::sim::torch
