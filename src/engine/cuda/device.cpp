#include "engine/cuda/device.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/error.hpp"
#include "base/log.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::cuda::check;
constexpr int oldest_capability = 8;  ///< of the architectures in cmake/Cuda.cmake

int visible_devices() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error == cudaSuccess && count > 0) return count;
  const char* mask = std::getenv("CUDA_VISIBLE_DEVICES");
  throw InputError(
      ExitCode::usage,
      fmt::format("no CUDA device is visible to this rank ({}; CUDA_VISIBLE_DEVICES is {}): check "
                  "nvidia-smi and the job's GPU request, or stay on processor cores (engine.device=cpu; of "
                  "foreshard-calibrate --device=cpu)",
                  error == cudaSuccess ? "0 devices" : cudaGetErrorString(error), mask ? mask : "not set"));
}

Device described(int index) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  expect_capability(properties.name, properties.major, properties.minor);
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index), "cudaDeviceGetPCIBusId");
  return {index, properties.name, bus.data(), static_cast<std::int64_t>(properties.totalGlobalMem)};
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The first two ranks with the same device, on rank 0; else an empty text.
std::string clash(comm::Communicator& ranks, const Device& device) {
  const std::string own = host_name() + " " + device.pci_bus_id;
  const auto all = ranks.gather(std::as_bytes(std::span(own)));
  std::map<std::string, std::size_t> taken;
  for (std::size_t rank = 0; rank < all.size(); ++rank)
    if (const auto [at, is_new] = taken.emplace(text_of(all[rank]), rank); !is_new)
      return fmt::format("ranks {} and {} have the same device ({})", at->second, rank, at->first);
  return "";
}

}  // namespace

void expect_capability(const std::string& name, int major, int minor) {
  if (major >= oldest_capability) return;
  throw InputError(ExitCode::usage,
                   fmt::format("{} has compute capability {}.{}; kernels are built for {}.0 (A100) and later: take "
                               "another device, or stay on processor cores (engine.device=cpu)",
                               name, major, minor, oldest_capability));
}

int device_of(int visible, int node_rank) { return visible == 1 ? 0 : node_rank % visible; }

Device choose_device(comm::Communicator& ranks) {
  const int visible = visible_devices();
  const Device device = described(device_of(visible, ranks.node_rank()));
  check(cudaSetDevice(device.index), "cudaSetDevice");
  const std::string fault = clash(ranks, device);
  if (!fault.empty())
    throw InputError(ExitCode::usage,
                     fault +
                         ": start as many ranks on a node as it has devices, and let every rank see all of them "
                         "(srun --ntasks-per-node=8 --gpus-per-node=8)");
  if (ranks.rank() == 0)
    log_info("device       {} ({}, {:.0f} GiB), {} visible", device.name, device.pci_bus_id,
             static_cast<double>(device.memory_bytes) / (1 << 30), visible);
  return device;
}

}  // namespace foreshard::engine::cuda
