#include "apps/calibrate/gpu_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "apps/calibrate/network_times.hpp"
#include "apps/calibrate/samples.hpp"
#include "apps/calibrate/trainee.hpp"
#include "apps/calibrate/workout.hpp"
#include "engine/cuda_engine.hpp"
#include "model/model.hpp"
#include "plan/build.hpp"

namespace foreshard::calibrate {
namespace {

constexpr double usable_memory = 0.8;  ///< the rest is for the context, a workspace, and trials of algorithms

bool any_kind(model::OpKind) { return true; }

sim::MeasuredGpu gpu_of(const engine::CudaDevice& device, const engine::CudaTrial& trial, int ranks_per_node) {
  const auto measured = [](double value, const std::string& how) { return sim::Quantity{value, "measured: " + how}; };
  const std::string copies = fmt::format("copies of {} MiB", trial.copy_bytes >> 20);
  const auto product = [](std::int64_t side) { return fmt::format("products of matrices of side {}", side); };
  return {.name = device.name,
          .architecture = device.architecture,
          .multiprocessors = device.multiprocessors,
          .per_node = std::max(ranks_per_node, device.visible),
          .memory_bytes = measured(static_cast<double>(device.memory_bytes), "as its driver reports"),
          .copy_bytes_per_s = measured(device.copy_bytes_per_s, copies + " inside the device"),
          .half_flops_per_s = measured(device.half_flops_per_s, product(trial.product_side) + " in bf16"),
          .f32_flops_per_s = measured(device.f32_flops_per_s, product(trial.product_side / 2) + " in f32"),
          .to_device_bytes_per_s = measured(device.to_device_bytes_per_s, copies + " from pinned memory"),
          .to_host_bytes_per_s = measured(device.to_host_bytes_per_s, copies + " to pinned memory"),
          .launch_s = measured(device.launch_s, "the smallest kernel between two events"),
          .graph_kernel_s = measured(device.graph_kernel_s, "one more of the smallest kernels in a graph"),
          .graph_launch_s = measured(device.graph_launch_s, "a graph of one kernel, until the host sees its end")};
}

bool fits(const plan::Settings& settings, const sim::MeasuredGpu& gpu) {
  const plan::Plan plan =
      plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
  return static_cast<double>(plan.arena_bytes) <= usable_memory * gpu.memory_bytes.value;
}

void measure_workout(sim::Machine& machine, Samples::LoneCollectives& collectives, const plan::Settings& settings,
                     const Cuda& cuda, int steps, const std::string& source) {
  const auto alone = comm::make_local(1);
  Trainee trainee(settings, *alone.front(), cuda.engine);
  Samples samples(trainee.plan());
  for (int step = 0; step <= steps; ++step) {
    const auto events = trainee.step();
    if (step > 0) samples.add(events);
  }
  samples.add_to(machine.kernels, 1, source, any_kind);
  samples.add_to(collectives);
}

void measure_kernels(sim::Machine& machine, const Cuda& cuda, const GpuTrial& trial, const Say& say) {
  const std::string source = fmt::format("measured in training steps of one rank on {}", machine.gpu->name);
  Samples::LoneCollectives collectives;
  for (std::size_t i = 0; i < trial.workouts.size(); ++i) {
    say(fmt::format("kernels, workout {} of {}", i + 1, trial.workouts.size()));
    const plan::Settings workout = trial.workouts[i].on_cuda();
    if (fits(workout, *machine.gpu)) measure_workout(machine, collectives, workout, cuda, trial.steps, source);
  }
  leave_out_below(machine.kernels, trial.floors * machine.gpu->launch_s.value);
  for (sim::CollectiveTable& table : tables_of(collectives, source)) machine.collectives.push_back(std::move(table));
}

/// Side by side, with this rank among them.
std::vector<int> members_around(int rank, int size) {
  std::vector<int> members(static_cast<std::size_t>(size));
  std::iota(members.begin(), members.end(), rank / size * size);
  return members;
}

void add(sim::Machine& machine, const std::vector<engine::CudaCollective>& measured, int ranks, int nodes) {
  const std::string source = fmt::format("measured: NCCL on {} x {}, nodes: {}", ranks, machine.gpu->name, nodes);
  const std::size_t before = machine.collectives.size();
  for (const engine::CudaCollective& point : measured) {
    const bool is_new = machine.collectives.size() == before || machine.collectives.back().kind != point.kind;
    if (is_new) machine.collectives.push_back({point.kind, ranks, {}, source, nodes});
    machine.collectives.back().points.push_back({static_cast<double>(point.bytes), point.seconds});
  }
}

}  // namespace

Cuda cuda_module() { return {engine::make_cuda_meter, engine::on_cuda({})}; }

GpuTrial gpu_trial(bool quick) {
  GpuTrial trial{.workouts = gpu_workouts(quick)};
  if (quick) trial.largest_collective_bytes >>= 2;
  return trial;
}

std::vector<int> group_sizes(int ranks, int ranks_per_node) {
  std::set<int> sizes;
  for (const int size : {2, ranks_per_node, ranks})
    if (size > 1 && ranks % size == 0 && (size > ranks_per_node || ranks_per_node % size == 0)) sizes.insert(size);
  return {sizes.begin(), sizes.end()};
}

void leave_out_below(std::vector<sim::KernelTable>& tables, double least_s) {
  for (sim::KernelTable& table : tables)
    std::erase_if(table.points, [=](const sim::KernelPoint& point) { return point.seconds < least_s; });
  std::erase_if(tables, [](const sim::KernelTable& table) { return table.points.empty(); });
}

void measure_gpus(sim::Machine& machine, comm::Communicator& world, const Cuda& cuda, const GpuTrial& trial,
                  const Say& say) {
  const int per_node = static_cast<int>(ranks_of_this_node(world).size());
  say("the devices");
  const auto meter = cuda.meter(world);
  machine.gpu = gpu_of(meter->device(trial.rates), trial.rates, per_node);
  machine.name = machine.gpu->name;
  for (const int size : group_sizes(world.size(), per_node)) {
    say(fmt::format("NCCL, {} ranks", size));
    const auto measured = meter->collectives(members_around(world.rank(), size), trial.largest_collective_bytes);
    add(machine, measured, size, std::max(1, size / per_node));
  }
  if (world.rank() == 0) measure_kernels(machine, cuda, trial, say);
  world.barrier();
}

}  // namespace foreshard::calibrate
