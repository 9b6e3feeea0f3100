#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <numbers>

#include "model/gpt.hpp"
#include "plan/build.hpp"
#include "sim/cost/stragglers.hpp"
#include "sim/gpu_op_cost.hpp"
#include "sim/predict.hpp"
#include "sim/report.hpp"

namespace foreshard::sim {
namespace {

using plan::Lane;

plan::Plan gpt2_plan(int replicas, int shards, plan::ScheduleOptions options = {}) {
  const model::GptConfig config{.layers = 12, .width = 768, .heads = 12, .vocab_size = 50257, .max_seq_len = 1024};
  return plan::build_plan(model::build_gpt(config, {4, 1024}), {replicas, 1, shards}, options);
}

double busy_s(const Prediction& prediction, Lane lane) {
  return prediction.lane_busy_s[static_cast<std::size_t>(lane)];
}

// Tables of order statistics: 1/√π of two, 1.42360 of eight, 2.50759 of a hundred (Harter, Biometrika 48, 1961).
TEST(Stragglers, TheLargestOfManyNormalsIsAsInTables) {
  EXPECT_NEAR(cost::expected_largest_normal(1), 0, 1e-6);
  EXPECT_NEAR(cost::expected_largest_normal(2), 1 / std::sqrt(std::numbers::pi), 1e-6);
  EXPECT_NEAR(cost::expected_largest_normal(8), 1.42360, 1e-5);
  EXPECT_NEAR(cost::expected_largest_normal(100), 2.50759, 1e-5);
  EXPECT_NEAR(cost::slowest_rank_factor(0.02, 8), 1 + 0.02 * 1.42360, 1e-6);
}

TEST(GpuPredict, AStepIsNoFasterThanItsPeaksAndItsMemoryIsThePlans) {
  const plan::Plan plan = gpt2_plan(1, 8);
  const Cluster cluster = read_cluster("aws-p5");
  const Prediction prediction = predict_on_gpus(plan, cluster);
  ASSERT_TRUE(prediction.gpu);
  EXPECT_EQ(prediction.arena_bytes, plan.arena_bytes);
  EXPECT_TRUE(prediction.fits());
  const double flops = flops_per_token(prediction.gpu->flops, FlopConvention::products) * prediction.gpu->flops.tokens;
  EXPECT_GT(prediction.step_time_s, flops / 2 / cluster.device.fp32_flops.value);
  for (const double busy : prediction.lane_busy_s) EXPECT_LE(busy, prediction.step_time_s);
  EXPECT_GT(busy_s(prediction, Lane::gather), 0);
  EXPECT_FALSE(prediction.sources.empty());
}

plan::ScheduleOptions in_bf16() {
  plan::ScheduleOptions options;
  options.precision.parameters = DType::bf16;
  return options;
}

/// 28 bytes an element (gradient read, parameter and two moments read and written) at an eighth of a node's memory.
TEST(GpuPredict, AnUpdateInHostMemoryIsAsFastAsThatMemory) {
  plan::ScheduleOptions options;
  options.offload = {true, true, true};
  const plan::Plan plan = gpt2_plan(1, 8, options);
  const Prediction prediction = predict_on_gpus(plan, read_cluster("aws-p5"));
  for (const trace::Event& event : prediction.simulation.events)
    if (const plan::Op& op = plan.ops[event.op]; op.kind == plan::OpKind::adamw) {
      EXPECT_NEAR(1e-9 * static_cast<double>(event.duration_ns), 28.0 * static_cast<double>(op.sizes.rows) * 8 / 300e9,
                  2e-9);
    }
  EXPECT_GT(prediction.step_time_s, predict_on_gpus(gpt2_plan(1, 8), read_cluster("aws-p5")).step_time_s);
}

TEST(GpuPredict, HalfIsFasterAndIsHeldAgainstItsOwnPeak) {
  const Cluster cluster = read_cluster("dgx-a100");
  const Prediction whole = predict_on_gpus(gpt2_plan(1, 8), cluster);
  const Prediction half = predict_on_gpus(gpt2_plan(1, 8, in_bf16()), cluster);
  EXPECT_LT(half.step_time_s, whole.step_time_s / 2);
  EXPECT_DOUBLE_EQ(half.gpu->peak_flops_per_s, 312e12);
  EXPECT_DOUBLE_EQ(whole.gpu->peak_flops_per_s, 19.5e12);
}

/// All that differs is how many ranks there are: the same work per rank, more ranks to wait for.
TEST(GpuPredict, AStepOnMoreNodesIsNotFaster) {
  const Cluster cluster = read_cluster("dgx-a100");
  double before = 0;
  for (const int shards : {8, 16, 64, 256}) {
    const Prediction prediction = predict_on_gpus(gpt2_plan(1, shards, in_bf16()), cluster);
    EXPECT_GT(busy_s(prediction, Lane::gather), before) << shards;
    before = busy_s(prediction, Lane::gather);
  }
}

TEST(GpuPredict, APlanLargerThanItsDeviceDoesNotFit) {
  Cluster cluster = read_cluster("aws-p5");
  cluster.device.memory_bytes.value = 1e9;
  EXPECT_FALSE(predict_on_gpus(gpt2_plan(1, 8), cluster).fits());
}

/// Each replica group needs a communicator besides those of the shard group: 688 MiB.
TEST(GpuPredict, CommunicatorsTakeMemoryBesidesTheArena) {
  const Cluster cluster = read_cluster("aws-p5");
  const auto besides = [&](int replicas, int shards) {
    return predict_on_gpus(gpt2_plan(replicas, shards), cluster).process_base_bytes;
  };
  EXPECT_EQ(besides(2, 8) - besides(1, 8), 688 << 20);
  EXPECT_EQ(besides(1, 8) - besides(1, 1), 2 * (std::int64_t{688} << 20));
}

plan::ScheduleOptions kept_in_bf16() {
  plan::ScheduleOptions options = in_bf16();
  options.master = DType::bf16;
  return options;
}

/// Never less than the whole divided by F (DeepSpeed issue 6796), padding at most.
void expect_state(double bytes_of_parameter, const plan::ScheduleOptions& options) {
  const Cluster cluster = read_cluster("aws-p5");
  for (const int shards : {1, 2, 8, 64}) {
    const plan::Plan plan = gpt2_plan(1, shards, options);
    const auto& bytes = predict_on_gpus(plan, cluster).peak.bytes;
    double state = 0;
    for (const auto kind : {plan::MemoryClass::parameters, plan::MemoryClass::gradients, plan::MemoryClass::optimizer})
      state += static_cast<double>(bytes[static_cast<std::size_t>(kind)]);
    const double whole = bytes_of_parameter * static_cast<double>(plan.parameters) / shards;
    EXPECT_GE(state, whole) << shards;
    EXPECT_LE(state, 1.002 * whole) << shards;
  }
}

// AdamW in f32: parameter, gradient and two moments, 16 bytes for each parameter, of which a rank holds 1/F (DeepSpeed
// issues 3442 and 3598, Megatron-LM issue 654).
TEST(GpuPredict, ModelStateIsSixteenBytesPerParameterAndRankOfTheGroup) { expect_state(16, {}); }
TEST(GpuPredict, ModelStateIsFourteenBytesWhereParametersAreKeptInBf16) { expect_state(14, kept_in_bf16()); }

/// Of AdamW of the largest shard, at the part of HBM that kernels reach.
void expect_update(double bytes_of_parameter, const plan::ScheduleOptions& options) {
  const plan::Plan plan = gpt2_plan(1, 1, options);
  const Cluster cluster = read_cluster("aws-p5");
  GpuOpCost cost(plan, cluster, cost::gpu_profile(), 1);
  const plan::Op* largest = nullptr;
  for (const plan::Op& op : plan.ops)
    if (op.kind == plan::OpKind::adamw && (!largest || op.sizes.rows > largest->sizes.rows)) largest = &op;
  ASSERT_TRUE(largest);
  const double bytes = bytes_of_parameter * static_cast<double>(largest->sizes.rows), rate = 0.85 * 3350e9;
  EXPECT_NEAR(static_cast<double>(cost(*largest).duration_ns), 1e9 * bytes / rate, 0.01e9 * bytes / rate);
}

/// Gradient read, parameter and two moments read and written: 28 bytes, 24 where the parameter is bf16.
TEST(GpuOpCost, AnUpdateTakesTheTimeOfItsBytes) {
  expect_update(28, {});
  expect_update(24, kept_in_bf16());
}

TEST(GpuReport, SaysWhatDeviceAndHowItCounts) {
  const plan::Plan plan = gpt2_plan(1, 8);
  const Prediction prediction = predict_on_gpus(plan, read_cluster("aws-p5"));
  const Machine none;
  const Subject subject{plan, none, {}};
  const auto gpu = nlohmann::json::parse(report_json(prediction, subject)).at("gpu");
  EXPECT_EQ(gpu.at("fits"), true);
  EXPECT_EQ(gpu.at("runtime"), "foreshard-cuda");
  const double palm = gpu.at("utilization").at("palm").at("tflops_per_device");
  EXPECT_NEAR(palm, prediction.tflops_per_device, 1e-9 * palm);
  const std::string text = report_text(prediction, subject);
  EXPECT_NE(text.find("torchtitan"), std::string::npos);
  EXPECT_NE(text.find("fits:"), std::string::npos);
}

}  // namespace
}  // namespace foreshard::sim
