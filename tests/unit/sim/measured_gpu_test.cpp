// Machine files of GPUs, and predictions by what was measured there. All tables are made up.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.hpp"
#include "model/gpt.hpp"
#include "plan/build.hpp"
#include "plan/query.hpp"
#include "sim/cost/measured_kernel.hpp"
#include "sim/cost/shape.hpp"
#include "sim/gpu_op_cost.hpp"
#include "sim/measured_cluster.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Machine made_up(const std::string& name = "NVIDIA H200") {
  Machine machine = generic_machine(64);
  machine.name = name;
  machine.date = "2026-01-31";
  machine.kernels.clear();
  machine.collectives.clear();
  machine.gpu = MeasuredGpu{.name = name,
                            .architecture = "sm_90",
                            .multiprocessors = 130,
                            .per_node = 8,
                            .memory_bytes = {1.5e11, "measured: a"},
                            .copy_bytes_per_s = {4e12, "measured: b"},
                            .half_flops_per_s = {7e14, "measured: c"},
                            .f32_flops_per_s = {5e13, "measured: d"},
                            .to_device_bytes_per_s = {5e10, "measured: e"},
                            .to_host_bytes_per_s = {4e10, "measured: f"},
                            .launch_s = {5e-6, "measured: g"},
                            .graph_kernel_s = {0, "measured: h"},
                            .graph_launch_s = {9e-6, "measured: i"}};
  return machine;
}

plan::Plan small_plan(int shards, plan::ScheduleOptions options = {}) {
  const model::GptConfig config{.layers = 2, .width = 256, .heads = 4, .vocab_size = 1000, .max_seq_len = 128};
  return plan::build_plan(model::build_gpt(config, {2, 128}), {1, 1, shards}, options);
}

bool is_kernel(const plan::Op& op) { return op.group == plan::GroupKind::none; }

/// Some time that grows with the work; unlike what any formula says.
double made_up_seconds(const plan::Op& op) {
  return 1e-8 * (1 + static_cast<int>(op.kind)) * std::pow(cost::shape_of(op.kind, op.sizes, op.accumulate).work, 0.6);
}

void add_tables(Machine& machine, const plan::Plan& plan) {
  for (const plan::Op& op : plan.ops)
    if (is_kernel(op))
      machine.kernels.push_back(
          {op.kind, op.accumulate, 1, {{op.sizes, made_up_seconds(op)}}, "measured", type_of(plan, op)});
  // Points of the same kind belong into one table.
  std::vector<KernelTable> joined;
  for (const KernelTable& table : machine.kernels) {
    const auto same = std::ranges::find_if(joined, [&](const KernelTable& other) {
      return other.kind == table.kind && other.accumulate == table.accumulate && other.dtype == table.dtype;
    });
    if (same == joined.end())
      joined.push_back(table);
    else
      same->points.push_back(table.points.front());
  }
  machine.kernels = joined;
}

TEST(MachineFileOfGpus, ReadsBackWhatWasWritten) {
  Machine machine = made_up();
  machine.kernels = {{OpKind::linear, true, 1, {{{.rows = 8, .cols = 16, .inner = 32}, 1e-5}}, "m", DType::bf16}};
  machine.collectives = {{OpKind::all_gather, 16, {{4096, 2e-5}, {65536, 4e-5}}, "n", 2}};
  const std::string text = to_json(machine);
  const Machine read = parse_machine(text, "gpu.json");
  EXPECT_EQ(to_json(read), text);
  ASSERT_TRUE(read.gpu);
  EXPECT_EQ(read.gpu->name, "NVIDIA H200");
  EXPECT_EQ(read.gpu->multiprocessors, 130);
  EXPECT_EQ(read.gpu->copy_bytes_per_s.value, 4e12);
  EXPECT_EQ(read.gpu->graph_launch_s.source, "measured: i");
  EXPECT_EQ(read.collectives.front().nodes, 2);
  EXPECT_EQ(read.kernels.size(), 1U) << "nothing of a generic machine";
}

std::string complaint(const std::string& from, const std::string& to) {
  Machine machine = made_up();
  machine.collectives = {{OpKind::all_gather, 16, {{4096, 2e-5}}, "n", 2}};
  std::string text = to_json(machine);
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  try {
    parse_machine(text.replace(at, from.size(), to), "gpu.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    return error.what();
  }
  return "no error";
}

TEST(MachineFileOfGpus, EveryFaultNamesFileKeyValueAndExpectation) {
  EXPECT_THAT(complaint("\"cuda\"", "\"tpu\""),
              AllOf(HasSubstr("gpu.json: 'device' is \"tpu\""), HasSubstr("\"cpu\" or \"cuda\"")));
  EXPECT_THAT(complaint("\"gpu\"", "\"gup\""), HasSubstr("the key 'gpu'"));
  EXPECT_THAT(complaint("\"multiprocessors\": 130", "\"multiprocessors\": 0"),
              AllOf(HasSubstr("'gpu.multiprocessors' is 0"), HasSubstr("at least 1")));
  EXPECT_THAT(complaint("4000000000000.0", "0"),
              AllOf(HasSubstr("'gpu.copy_bytes_per_s.value' is 0"), HasSubstr("above 0")));
  EXPECT_THAT(complaint("\"nodes\": 2", "\"nodes\": 3"),
              AllOf(HasSubstr("'collectives[0].nodes' is 3"), HasSubstr("divisor of the 16 ranks")));
}

TEST(MeasuredKernel, IsExactWhereItWasMeasuredAndAsTheFormulaBetween) {
  Machine machine = made_up();
  machine.kernels = {{OpKind::gelu, false, 1, {{{.rows = 1000}, 3.0}, {{.rows = 4000}, 12.0}}, "m", DType::f32}};
  const auto formula = [](const Sizes& sizes) { return static_cast<double>(sizes.rows) * 1e-3 + 1; };  // 2 s, 5 s
  const auto seconds = [&](std::int64_t rows) {
    return cost::measured_seconds(machine, {OpKind::gelu, false, DType::f32, {.rows = rows}}, formula, nullptr);
  };
  EXPECT_DOUBLE_EQ(seconds(1000).value(), 3);
  EXPECT_DOUBLE_EQ(seconds(4000).value(), 12);
  EXPECT_NEAR(seconds(2000).value(), 3 * std::sqrt(1.5 * 2.4), 1e-12) << "half-way in logarithms from 1.5 to 2.4";
  EXPECT_DOUBLE_EQ(seconds(8000).value(), 9 * 2.4) << "the nearest ratio holds a little beyond";
  EXPECT_FALSE(seconds(8001)) << "out of range";
  EXPECT_FALSE(seconds(499)) << "out of range";
}

TEST(MeasuredKernel, IsOfItsTypeAndPrefersItsForm) {
  Machine machine = made_up();
  machine.kernels = {{OpKind::cast, false, 1, {{{.rows = 8}, 1.0}}, "writes", DType::bf16},
                     {OpKind::cast, true, 1, {{{.rows = 8}, 2.0}}, "adds", DType::bf16}};
  const auto formula = [](const Sizes&) { return 1.0; };
  std::string source;
  const auto seconds = [&](OpKind kind, bool accumulate, DType dtype) {
    return cost::measured_seconds(machine, {kind, accumulate, dtype, {.rows = 8}}, formula, &source);
  };
  EXPECT_EQ(seconds(OpKind::cast, false, DType::bf16), 1.0);
  EXPECT_EQ(source, "writes");
  EXPECT_EQ(seconds(OpKind::cast, true, DType::bf16), 2.0);
  EXPECT_EQ(source, "adds");
  EXPECT_FALSE(seconds(OpKind::cast, false, DType::f32));
  EXPECT_FALSE(seconds(OpKind::gelu, false, DType::bf16));
  machine.kernels.erase(machine.kernels.begin());
  EXPECT_EQ(seconds(OpKind::cast, false, DType::bf16), 2.0) << "the other form, where there is no more";
}

/// On one rank nothing overlaps but the sum of the loss: all else is on the compute lane, or it waits for it.
TEST(MeasuredGpu, AStepWithoutOverlapIsTheSumOfItsTable) {
  const plan::Plan plan = small_plan(1);
  Machine machine = made_up();
  add_tables(machine, plan);
  for (const OpKind kind : {OpKind::all_gather, OpKind::all_reduce})
    machine.collectives.push_back({kind, 1, {{1, 7e-6}, {1e12, 7e-6}}, "measured", 1});
  double sum = 0;
  for (const plan::Op& op : plan.ops)
    if (op.kind != OpKind::sum_loss) sum += is_kernel(op) ? made_up_seconds(op) : 7e-6;
  const Prediction prediction = predict_on_gpus(plan, measured_cluster(machine));
  EXPECT_NEAR(prediction.step_time_s, sum, 1e-9 * static_cast<double>(plan.ops.size()));
  EXPECT_THAT(prediction.sources, testing::Contains("measured"));
}

TEST(MeasuredGpu, ACollectiveTakesWhatItsGroupTook) {
  const plan::Plan plan = small_plan(8);
  Machine machine = made_up();
  machine.collectives = {{OpKind::all_gather, 8, {{1, 3e-4}, {1e12, 3e-4}}, "measured: eight", 1},
                         {OpKind::all_gather, 8, {{1, 9e-4}, {1e12, 9e-4}}, "measured: two nodes", 2}};
  const auto gathers_take = [&](double seconds) {
    const Cluster cluster = measured_cluster(machine);
    GpuOpCost cost(plan, cluster, cost::gpu_profile(), 1);
    for (const plan::Op& op : plan.ops)
      if (op.kind == OpKind::all_gather) {
        EXPECT_EQ(cost(op).duration_ns, std::llround(seconds * 1e9));
      }
    return cost.sources();
  };
  EXPECT_THAT(gathers_take(3e-4), testing::Contains("measured: eight"));
  machine.gpu->per_node = 4;
  EXPECT_THAT(gathers_take(9e-4), testing::Contains("measured: two nodes"));
}

TEST(MeasuredGpu, WhatWasNotMeasuredIsByFormula) {
  const plan::Plan plan = small_plan(8);
  const Cluster measured = measured_cluster(made_up());
  Cluster catalogue = measured;
  catalogue.measured = nullptr;
  GpuOpCost by_table(plan, measured, cost::gpu_profile(), 1), by_formula(plan, catalogue, cost::gpu_profile(), 1);
  const auto issue_ns = std::llround(cost::gpu_profile().graph_issue_s.value * 1e9);
  for (const plan::Op& op : plan.ops) {
    const std::int64_t expected = by_formula(op).duration_ns;
    if (is_kernel(op) && expected <= issue_ns) continue;  // a graph's kernels have no floor here
    EXPECT_EQ(by_table(op).duration_ns, expected);
  }
  EXPECT_THAT(by_table.sources(), testing::Contains(HasSubstr("NCCL's own model")));
}

TEST(MeasuredGpu, ItsMemoryIsTheDrivers) {
  Machine machine = made_up();
  const plan::Plan plan = small_plan(1);
  EXPECT_TRUE(predict_on_gpus(plan, measured_cluster(machine)).fits());
  machine.gpu->memory_bytes.value = 1e6;
  EXPECT_FALSE(predict_on_gpus(plan, measured_cluster(machine)).fits());
}

TEST(MeasuredCluster, KnowsItsDeviceFromTheCatalogueByItsPrintedName) {
  const Cluster cluster = measured_cluster(made_up());
  EXPECT_EQ(cluster.device.name, read_device("h200").name);
  EXPECT_EQ(cluster.device.bf16_flops.value, read_device("h200").bf16_flops.value);
  EXPECT_EQ(cluster.device.multiprocessors, 130);
  EXPECT_EQ(cluster.device.memory_bytes.value, 1.5e11);
  EXPECT_EQ(cluster.gpus_per_node, 8);
  EXPECT_EQ(cluster.intra.name, read_fabric("nvlink4").name);
}

/// Products by formula then have the rate that was measured.
TEST(MeasuredCluster, OfAnUnknownDeviceHasTheRatesThatWereMeasured) {
  const Cluster cluster = measured_cluster(made_up("A device of tomorrow"));
  EXPECT_EQ(cluster.device.name, "A device of tomorrow");
  const double part = cost::gpu_profile().gemm.rate.of("sm_90").value;
  EXPECT_DOUBLE_EQ(part * cluster.device.bf16_flops.value, 7e14);
  EXPECT_THAT(cluster.device.bf16_flops.source, HasSubstr("assumed from what was measured"));
  EXPECT_GT(predict_on_gpus(small_plan(8), cluster).step_time_s, 0);
}

TEST(MeasuredCluster, RefusesAnotherDevicesTables) {
  const Machine machine = made_up();
  EXPECT_EQ(measured_cluster(read_cluster("aws-p5en"), machine, "gpu.json").name, read_cluster("aws-p5en").name);
  EXPECT_THAT(
      [&] { measured_cluster(read_cluster("aws-p4d"), machine, "gpu.json"); },
      testing::ThrowsMessage<InputError>(AllOf(HasSubstr("gpu.json was measured on NVIDIA H200"), HasSubstr("A100"))));
}

}  // namespace
}  // namespace foreshard::sim
