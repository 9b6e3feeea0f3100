#pragma once
#include <functional>
#include <string>
#include <vector>

#include "engine/cuda_meter.hpp"
#include "engine/engine.hpp"
#include "plan/settings.hpp"
#include "sim/machine.hpp"

namespace foreshard::calibrate {

/// The ways to CUDA devices: the module's, or others that a test has.
struct Cuda {
  std::function<std::unique_ptr<engine::CudaMeter>(comm::Communicator&)> meter;  ///< collective
  engine::MakeEngine engine;
};
Cuda cuda_module();

/// What is run to measure a GPU.
struct GpuTrial {
  engine::CudaTrial rates;
  std::vector<plan::Settings> workouts;  ///< of one rank each
  int steps = 5;                         ///< of each workout, the first apart
  std::int64_t largest_collective_bytes = std::int64_t{1} << 28;
  double floors = 1.5;  ///< kernels that took less than so many launches are not measured, but their issue
};
GpuTrial gpu_trial(bool quick);

using Say = std::function<void(const std::string&)>;

/// Collective over all ranks, one for each GPU: measures its rates, on rank 0 alone its kernels in training steps, and
/// NCCL among two ranks, those of a node, and all, where these are numbers that divide the ranks; sets them on rank 0.
/// A workout that does not fit the device's memory is left out. The tables of a lone rank's collectives are of the
/// copies that stand for them.
void measure_gpus(sim::Machine& machine, comm::Communicator& world, const Cuda& cuda, const GpuTrial& trial,
                  const Say& say);

/// Numbers of ranks of which NCCL is measured.
std::vector<int> group_sizes(int ranks, int ranks_per_node);

/// Leaves out points below `least_s`, and tables without points.
void leave_out_below(std::vector<sim::KernelTable>& tables, double least_s);

}  // namespace foreshard::calibrate
