#include "sim/measured_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "sim/catalogue.hpp"
#include "sim/cost/gpu_profile.hpp"

namespace foreshard::sim {
namespace {

bool in_catalogue(const std::string& printed) {
  const auto names = catalogue_names("gpus");
  return std::ranges::find(names, catalogue_name_of(printed)) != names.end();
}

/// Peaks such that the formula has the rates that were measured.
Device unknown_device(const MeasuredGpu& gpu) {
  const cost::GpuProfile& profile = cost::gpu_profile();
  const auto peak = [](const Quantity& rate, double part) {
    return Quantity{rate.value / part, "assumed from what was " + rate.source};
  };
  Device device{.architecture = gpu.architecture, .nvlinks = 0};
  device.bf16_flops = peak(gpu.half_flops_per_s, profile.gemm.rate.of(gpu.architecture).value);
  device.fp32_flops = peak(gpu.f32_flops_per_s, profile.gemm.f32_part.value);
  device.memory_bytes_per_s = peak(gpu.copy_bytes_per_s, profile.hbm_part.value);
  device.l2_bytes = {0, "assumed: none"};
  return device;
}

Device device_of(const MeasuredGpu& gpu) {
  Device device = in_catalogue(gpu.name) ? read_device(gpu.name) : unknown_device(gpu);
  if (device.name.empty()) device.name = gpu.name;
  device.multiprocessors = gpu.multiprocessors;
  device.memory_bytes = gpu.memory_bytes;
  device.matmul_flops = gpu.half_flops_per_s;
  return device;
}

Fabric links_of(const Device& device) {
  if (device.nvlinks == 0) return read_fabric("pcie");
  const int capability = device.compute_capability();
  return read_fabric(capability >= 100 ? "nvlink5" : capability >= 90 ? "nvlink4" : "nvlink3");
}

}  // namespace

Cluster measured_cluster(const Machine& machine) {
  FORESHARD_EXPECT(machine.gpu, "a machine of processor cores is no cluster of GPUs");
  const MeasuredGpu& gpu = *machine.gpu;
  const Device device = device_of(gpu);
  return {.name = machine.name,
          .device = device,
          .gpus_per_node = gpu.per_node,
          .link_domain = gpu.per_node,
          .nics = gpu.per_node,
          .nic_bytes_per_s = {50e9, "assumed: an adapter of 400 Gbit/s for each device; machine.cluster says better"},
          .cpu = "intel",
          .intra = links_of(device),
          .fabric = read_fabric("infiniband"),
          .measured = std::make_shared<const Machine>(machine)};
}

Cluster measured_cluster(Cluster cluster, const Machine& machine, const std::string& path) {
  const Device device = device_of(*machine.gpu);
  if (device.name != cluster.device.name)
    throw InputError(ExitCode::usage, fmt::format("machine.file = {} was measured on {}, but machine.cluster = {} has "
                                                  "{}\n  leave one of them out, or measure such a device",
                                                  path, machine.gpu->name, cluster.name, cluster.device.name));
  cluster.device = device;
  cluster.measured = std::make_shared<const Machine>(machine);
  return cluster;
}

}  // namespace foreshard::sim
