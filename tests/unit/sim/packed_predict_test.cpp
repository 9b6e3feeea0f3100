// Steps of QLoRA in our own runtime: its bytes against the closed form that published runs are predicted by, its time
// against what the memory moves.
#include <gtest/gtest.h>

#include "model/llama.hpp"
#include "plan/build.hpp"
#include "sim/closed_form/memory.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim {
namespace {

using model::Packing;

constexpr std::int64_t lora_rank = 8;

plan::Plan plan_of(Packing base, std::int64_t seq, const plan::Mesh& mesh, bool full_recompute = false) {
  plan::ScheduleOptions options;
  options.precision.parameters = DType::bf16;
  if (full_recompute) options.recompute.mode = plan::Recompute::Mode::full;
  model::LlamaConfig config = model::llama_preset("llama2-7b");
  config.lora = {.rank = lora_rank, .base = base};
  return plan::build_plan(model::build_llama(config, {1, seq}), mesh, options);
}

double state_bytes(const plan::Plan& plan) {
  std::int64_t bytes = 0;
  for (const plan::Buffer& buffer : plan.buffers)
    if (buffer.persistent &&
        (buffer.memory == plan::MemoryClass::parameters || buffer.memory == plan::MemoryClass::optimizer))
      bytes += buffer.size_bytes;
  return static_cast<double>(bytes);
}

/// Of the root and of as many blocks as are gathered at once.
double gathered_bytes(const plan::Plan& plan, int blocks) {
  const std::int64_t root = plan.units[0].whole_bytes(plan.dtype, false);
  return static_cast<double>(root + blocks * plan.units[1].whole_bytes(plan.dtype, false));
}

closed_form::PeakMemory closed_form_of(double bytes_a_value, int shards) {
  const closed_form::Step step{.layers = 32,
                               .width = 4096,
                               .heads = 32,
                               .kv_heads = 32,
                               .ffn_width = 11008,
                               .vocab_size = 32000,
                               .gated_mlp = true,
                               .tied_head = false,
                               .gpus = shards,
                               .shard_degree = shards};
  const double matrices = 32 * (4.0 * 4096 * 4096 + 3.0 * 4096 * 11008) + 2.0 * 32000 * 4096;
  const double trained = 32 * lora_rank * 2 * (4096.0 + 4096.0);  // beside queries and values
  return closed_form::peak_memory(step, {.parameter = bytes_a_value,
                                         .moments = 8,
                                         .gathered = bytes_a_value,
                                         .trained_part = trained / matrices,
                                         .adapter = 4,
                                         .table = 4});
}

/// Norms are not in the closed form; adapters are gathered besides.
TEST(PackedPredict, StateAndGatheredParametersAreThoseOfTheClosedForm) {
  for (const int shards : {1, 8, 64})
    for (const auto& [base, bytes] :
         {std::pair{Packing::nf4, 0.5 + 4.0 / 64}, std::pair{Packing::nf4_dq, 0.5 + 1.0 / 64 + 4.0 / 64 / 256}}) {
      const plan::Plan plan = plan_of(base, 64, {1, 1, shards});
      const closed_form::PeakMemory expected = closed_form_of(bytes, shards);
      EXPECT_NEAR(state_bytes(plan) / expected.state, 1, 0.002) << shards;
      if (shards > 1) {
        EXPECT_NEAR(gathered_bytes(plan, 2) / expected.gathered, 1, 0.01) << shards;
      }
    }
}

/// In forward and in backward; the first block's queries, keys and values need no gradient before them.
double dequantised_values() {
  const double products = 4.0 * 4096 * 4096 + 3.0 * 4096 * 11008;
  return 32 * products * 2 - 3.0 * 4096 * 4096;
}

TEST(PackedPredict, DequantisationTakesAsLongAsMemoryMovesItsBytes) {
  const Cluster cluster = read_cluster("2x-rtx-3090");  // whose L2 holds no weight
  const plan::Plan plan = plan_of(Packing::nf4, 2048, {});
  const Prediction prediction = predict_on_gpus(plan, cluster);
  double dequantising_s = 0;
  for (const trace::Event& event : prediction.simulation.events)
    if (plan.ops[event.op].kind == plan::OpKind::dequantise)
      dequantising_s += 1e-9 * static_cast<double>(event.duration_ns);
  const double moved_s = dequantised_values() * (0.5 + 4.0 / 64 + 2) / cluster.device.memory_bytes_per_s.value;
  EXPECT_GT(dequantising_s, moved_s);
  EXPECT_LT(dequantising_s, 1.3 * moved_s);
}

TEST(PackedPredict, GathersTakeAFewTimesLess) {
  const auto gather_s = [](Packing base) {
    const Prediction prediction = predict_on_gpus(plan_of(base, 2048, {1, 1, 8}), read_cluster("aws-p5"));
    return prediction.lane_busy_s[static_cast<std::size_t>(plan::Lane::gather)];
  };
  const double ratio = gather_s(Packing::none) / gather_s(Packing::nf4);
  EXPECT_GT(ratio, 2.5) << "16 bits over 4.5, but the root and adapters are halves in both";
  EXPECT_LT(ratio, 16 / 4.5);
}

/// 6.5 · 10⁹ values of 4 bytes are more than a device of 24 GB has.
TEST(PackedPredict, SevenBillionFitASmallDevice) {
  const Cluster cluster = read_cluster("2x-rtx-4090");
  EXPECT_TRUE(predict_on_gpus(plan_of(Packing::nf4_dq, 512, {}, true), cluster).fits());
  EXPECT_FALSE(predict_on_gpus(plan_of(Packing::none, 512, {}, true), cluster).fits());
}

TEST(PackedPredict, ProcessorCoresDequantiseToo) {
  const Prediction plain = predict(plan_of(Packing::none, 64, {1, 1, 2}), generic_machine(8), {2, 4});
  const Prediction packed = predict(plan_of(Packing::nf4, 64, {1, 1, 2}), generic_machine(8), {2, 4});
  const auto compute = static_cast<std::size_t>(plan::Lane::compute);
  EXPECT_GT(packed.lane_busy_s[compute], plain.lane_busy_s[compute]);
  EXPECT_LT(packed.arena_bytes, plain.arena_bytes);
  EXPECT_EQ(packed.model_flops, plain.model_flops);
}

}  // namespace
}  // namespace foreshard::sim
