// LoRA on models of Llama's family under PyTorch's FSDP1, FSDP2 and DDP. Its memory is compared with PyTorch's in
// torch_memory_test.cpp, what it issues in torch_issue_order_test.cpp.
#include <gtest/gtest.h>

#include "plan/build.hpp"
#include "sim/runtimes/named_models.hpp"
#include "sim/runtimes/torch_model.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

const Cluster& cluster() {
  static const Cluster one = read_cluster("dgx-a100");
  return one;
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
