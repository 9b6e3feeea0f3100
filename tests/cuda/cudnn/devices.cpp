#include "cuda/cudnn/devices.hpp"

#include <nlohmann/json.hpp>

namespace foreshard::kernels::cuda::cudnn {

std::string json_of(const Device& d) {
  return nlohmann::json{{"maxGridSize", {2147483647, 65535, 65535}},
                        {"maxBlockSize", {1024, 1024, 64}},
                        {"deviceVer", d.architecture * 10},
                        {"driverVer", 13000},
                        {"multiProcessorCount", d.multiprocessors},
                        {"regsPerBlock", 65536},
                        {"smClockRateKHz", d.clock_khz},
                        {"memClockRateKHz", d.memory_clock_khz},
                        {"l2CacheSize", d.l2_bytes},
                        {"warpSize", 32},
                        {"maxSharedMemoryPerBlock", 49152},
                        {"maxSharedMemoryPerBlockOptin", d.shared_bytes},
                        {"reservedSharedMemoryPerBlock", 1024},
                        {"maxRegistersPerSM", 65536},
                        {"pciDeviceId", 0},
                        {"maxCtasPerSM", 32},
                        {"maxThreadsPerBlock", 1024},
                        {"maxThreadsPerSM", 2048},
                        {"isTccDriver", 0},
                        {"supportCoopLaunch", 1},
                        {"cudaDeviceId", 0},
                        {"totalGlobalMem", d.memory_bytes},
                        {"deviceName", d.name}}
      .dump();
}

Descriptor properties_of(const Device& device) {
  const std::string json = json_of(device);
  Descriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(json)).finalize();
  return properties;
}

}  // namespace foreshard::kernels::cuda::cudnn
