#include <fmt/format.h>

#include <cstring>

#include "rehearsal/runtime/job.hpp"
#include "rehearsal/runtime/memory.hpp"
#include "rehearsal/runtime/state.hpp"

namespace rehearsal {
namespace {

/// A device of the size of an H100, with less memory.
cudaDeviceProp properties_of(int device) {
  cudaDeviceProp properties = {};
  std::strcpy(properties.name, "Rehearsal");
  properties.uuid.bytes[0] = static_cast<char>(physical_device(device));
  properties.totalGlobalMem = Memory::instance().total(device);
  properties.sharedMemPerBlock = 48 * 1024;
  properties.sharedMemPerBlockOptin = 227 * 1024;
  properties.sharedMemPerMultiprocessor = 228 * 1024;
  properties.major = 9;
  properties.minor = 0;
  properties.multiProcessorCount = 132;
  properties.warpSize = 32;
  properties.maxThreadsPerBlock = 1024;
  properties.l2CacheSize = 50 << 20;
  properties.pciBusID = physical_device(device) + 1;
  properties.asyncEngineCount = 3;
  properties.unifiedAddressing = properties.canMapHostMemory = 1;
  return properties;
}

bool exists(int device) { return device >= 0 && device < devices(); }

int attribute_of(const cudaDeviceProp& properties, cudaDeviceAttr attribute) {
  switch (attribute) {
    case cudaDevAttrMultiProcessorCount:
      return properties.multiProcessorCount;
    case cudaDevAttrComputeCapabilityMajor:
      return properties.major;
    case cudaDevAttrComputeCapabilityMinor:
      return properties.minor;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(properties.sharedMemPerBlockOptin);
  }
  return 0;
}

}  // namespace
}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 13000, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* version) { return *version = devices() == 0 ? 0 : 13000, cudaSuccess; }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = 0;
  return call("cudaGetDeviceCount", [&] { return *count = devices(), cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
  if (devices() == 0) return remember(cudaErrorInsufficientDriver);
  if (const int error = injected("cudaSetDevice"); error != 0) return remember(static_cast<cudaError_t>(error));
  if (!exists(device)) return remember(cudaErrorInvalidDevice);
  set_current_device(device);
  return remember(error_of(device));
}
cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&] { return *device = current_device(), cudaSuccess; });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return call("cudaGetDeviceProperties", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    *properties = properties_of(device);
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    *value = attribute_of(properties_of(device), attribute);
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device) {
  return call("cudaDeviceGetPCIBusId", [&] {
    if (!exists(device)) return cudaErrorInvalidDevice;
    if (length < 13) return cudaErrorInvalidValue;
    std::strcpy(id, fmt::format("0000:{:02x}:00.0", physical_device(device) + 1).c_str());
    return cudaSuccess;
  });
}
}
