// Calibration of GPUs on rehearsed devices. Their times mean nothing; that there is one for everything does.
#include "apps/calibrate/gpu_times.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "apps/calibrate/local_ranks.hpp"
#include "base/error.hpp"
#include "engine/cuda/executor.hpp"
#include "engine/cuda/meter.hpp"
#include "model/model.hpp"
#include "plan/build.hpp"
#include "rehearsal/control.hpp"
#include "sim/measured_cluster.hpp"
#include "sim/op_cost.hpp"
#include "sim/predict.hpp"

namespace foreshard::calibrate {
namespace {

using model::OpKind;
using testing::ElementsAre;
using testing::HasSubstr;

Cuda rehearsed() {
  return {[](comm::Communicator& ranks) { return std::make_unique<engine::cuda::Meter>(ranks); },
          [](const engine::EngineSpec& spec) {
            return std::make_unique<engine::cuda::Executor>(spec, engine::CudaOptions{});
          }};
}

plan::Settings workout(std::int64_t width, DType parameters, int ranks = 1) {
  plan::Settings settings;
  settings.model =
      model::GptConfig{.layers = 2, .width = width, .heads = 2, .vocab_size = 37, .max_seq_len = 8, .dropout = 0.1};
  settings.batch = {.batch = 2, .seq = 8};
  settings.mesh = {1, 1, ranks};
  settings.schedule.micro_batches = 2;
  settings.cuda_workspace_bytes = 1 << 20;
  settings.schedule.precision.parameters = parameters;
  return settings;
}

plan::Plan plan_of(const plan::Settings& settings) {
  return plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
}

GpuTrial small_trial() {
  return {.rates = {.copy_bytes = 4096, .product_side = 32, .repeats = 3},
          .workouts = {workout(16, DType::f32), workout(32, DType::f32), workout(16, DType::bf16)},
          .steps = 2,
          .largest_collective_bytes = 32768,
          .floors = 0};
}

/// The machine of rank 0, with a device for each rank.
sim::Machine measured(int ranks, const GpuTrial& trial) {
  rehearsal::reset(ranks, std::size_t{256} << 20);
  sim::Machine machine;
  run_local_ranks(ranks, [&](comm::Communicator& communicator) {
    sim::Machine own = sim::generic_machine(1);
    own.kernels.clear();
    own.collectives.clear();
    measure_gpus(own, communicator, rehearsed(), trial, [](const std::string&) {});
    if (communicator.rank() == 0) machine = own;
  });
  EXPECT_THAT(rehearsal::reports(), testing::IsEmpty());
  return machine;
}

const sim::Machine& of_two() {
  static const sim::Machine machine = measured(2, small_trial());
  return machine;
}

bool has_kernel(const sim::Machine& machine, const plan::Plan& plan, const plan::Op& op) {
  return std::ranges::any_of(machine.kernels, [&](const sim::KernelTable& table) {
    return table.kind == op.kind && table.accumulate == op.accumulate && table.dtype == sim::type_of(plan, op) &&
           std::ranges::count(table.points, op.sizes, &sim::KernelPoint::sizes) > 0;
  });
}

TEST(RehearsedCalibration, HasATimeForEveryKernelOfItsWorkouts) {
  for (const plan::Settings& settings : small_trial().workouts) {
    const plan::Plan plan = plan_of(settings);
    for (const plan::Op& op : plan.ops)
      if (op.group == plan::GroupKind::none) {
        EXPECT_TRUE(has_kernel(of_two(), plan, op)) << model::name_of(op.kind);
      }
  }
  for (const sim::KernelTable& table : of_two().kernels)
    for (const sim::KernelPoint& point : table.points) EXPECT_GT(point.seconds, 0) << model::name_of(table.kind);
}

TEST(RehearsedCalibration, KnowsTheDevice) {
  const sim::MeasuredGpu& gpu = of_two().gpu.value();
  EXPECT_EQ(of_two().name, "Rehearsal");
  EXPECT_EQ(gpu.architecture, "sm_90");
  EXPECT_EQ(gpu.multiprocessors, 132);
  EXPECT_EQ(gpu.per_node, 2);
  EXPECT_EQ(gpu.memory_bytes.value, 256 << 20);
  for (const sim::Quantity* rate :
       {&gpu.copy_bytes_per_s, &gpu.half_flops_per_s, &gpu.f32_flops_per_s, &gpu.to_device_bytes_per_s,
        &gpu.to_host_bytes_per_s, &gpu.launch_s, &gpu.graph_launch_s}) {
    EXPECT_GT(rate->value, 0) << rate->source;
    EXPECT_THAT(rate->source, HasSubstr("measured"));
  }
}

/// By ranks: those of a lone rank are of copies, those of two of NCCL, at 256 bytes a member and by fours.
TEST(RehearsedCalibration, HasCollectivesOfEachGroupBySize) {
  std::set<std::pair<OpKind, int>> found;
  for (const sim::CollectiveTable& table : of_two().collectives) {
    EXPECT_TRUE(found.emplace(table.kind, table.ranks).second) << "twice";
    EXPECT_EQ(table.nodes, 1);
    double before = 0;
    for (const sim::CollectivePoint& point : table.points) {
      EXPECT_GT(point.bytes, std::exchange(before, point.bytes));
      EXPECT_GT(point.seconds, 0);
    }
    if (table.ranks == 2) {
      EXPECT_EQ(table.points.front().bytes, 512);
      EXPECT_EQ(table.points.back().bytes, 32768);
    }
  }
  for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter, OpKind::all_reduce})
    EXPECT_TRUE(found.contains({kind, 2})) << model::name_of(kind);
  EXPECT_TRUE(found.contains({OpKind::all_reduce, 1}));
}

TEST(RehearsedCalibration, ItsFileIsReadBackAndPredicts) {
  const sim::Machine read = sim::parse_machine(sim::to_json(of_two()), "gpu.json");
  EXPECT_EQ(sim::to_json(read), sim::to_json(of_two()));
  for (const int ranks : {1, 2}) {
    const sim::Prediction prediction =
        sim::predict_on_gpus(plan_of(workout(16, DType::f32, ranks)), sim::measured_cluster(read));
    EXPECT_GT(prediction.step_time_s, 0);
    EXPECT_THAT(prediction.sources, testing::Contains(HasSubstr("one rank on Rehearsal")));
    if (ranks == 2) {
      EXPECT_THAT(prediction.sources, testing::Contains(HasSubstr("NCCL on 2 x Rehearsal")));
    }
  }
}

TEST(RehearsedCalibration, OfOneDeviceHasNoNccl) {
  GpuTrial trial = small_trial();
  trial.workouts.resize(1);
  const sim::Machine machine = measured(1, trial);
  EXPECT_EQ(machine.gpu->per_node, 1);
  for (const sim::CollectiveTable& table : machine.collectives) EXPECT_EQ(table.ranks, 1);
  EXPECT_FALSE(machine.kernels.empty());
}

TEST(RehearsedCalibration, LeavesNothingBehind) {
  GpuTrial trial = small_trial();
  trial.workouts.resize(1);
  measured(2, trial);
  const rehearsal::Live left = rehearsal::live();
  EXPECT_EQ(left.allocations + left.streams + left.events + left.graphs + left.communicators, 0);
}

TEST(RehearsedCalibration, AFailedCollectiveEndsAllRanks) {
  rehearsal::reset(2, std::size_t{256} << 20);
  rehearsal::fail_call("ncclReduceScatter", 4, ncclInternalError);
  EXPECT_THAT(
      [] {
        run_local_ranks(2, [](comm::Communicator& ranks) {
          const std::vector<int> both{0, 1};
          engine::cuda::Meter(ranks).collectives(both, 8192);
        });
      },
      testing::ThrowsMessage<LibraryError>(HasSubstr("ncclReduceScatter")));
}

/// Two layers of width 2048 have 100 million parameters, 16 bytes each with their gradients and moments.
TEST(RehearsedCalibration, LeavesOutWhatDoesNotFit) {
  GpuTrial trial = small_trial();
  trial.workouts = {workout(16, DType::f32), workout(2048, DType::f32)};
  const sim::Machine machine = measured(1, trial);
  for (const sim::KernelTable& table : machine.kernels)
    for (const sim::KernelPoint& point : table.points) EXPECT_LT(point.sizes.cols, 2048) << model::name_of(table.kind);
}

TEST(RehearsedCalibration, WithoutADeviceSaysWhatToDo) {
  rehearsal::reset(0);
  const auto ranks = comm::make_local(1);
  EXPECT_THAT([&] { engine::cuda::Meter(*ranks.front()); },
              testing::ThrowsMessage<InputError>(
                  testing::AllOf(HasSubstr("no CUDA device"), HasSubstr("foreshard-calibrate --device=cpu"))));
}

TEST(GroupSizes, AreTwoANodeAndAll) {
  EXPECT_THAT(group_sizes(1, 1), ElementsAre());
  EXPECT_THAT(group_sizes(2, 1), ElementsAre(2));
  EXPECT_THAT(group_sizes(8, 8), ElementsAre(2, 8));
  EXPECT_THAT(group_sizes(16, 8), ElementsAre(2, 8, 16));
  EXPECT_THAT(group_sizes(6, 3), ElementsAre(3, 6)) << "two would be on two nodes, or not";
}

TEST(LeaveOut, DropsWhatIsTheTimeOfIssuing) {
  std::vector<sim::KernelTable> tables = {
      {OpKind::gelu, false, 1, {{{.rows = 1}, 1e-6}, {{.rows = 2}, 5e-6}}, "m", DType::f32},
      {OpKind::cast, false, 1, {{{.rows = 1}, 1e-6}}, "m", DType::f32}};
  leave_out_below(tables, 2e-6);
  ASSERT_EQ(tables.size(), 1U);
  ASSERT_EQ(tables.front().points.size(), 1U);
  EXPECT_EQ(tables.front().points.front().seconds, 5e-6);
}

}  // namespace
}  // namespace foreshard::calibrate
