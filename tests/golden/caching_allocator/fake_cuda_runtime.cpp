// A CUDA runtime without a device: memory is only counted, time stands still but for waits.
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>

#include "fake_device.hpp"

FakeDevice fake_device;

namespace {
std::map<std::uintptr_t, std::size_t> allocated;
std::uintptr_t next_address = std::uintptr_t{1} << 40;
std::map<CUmemGenericAllocationHandle, std::size_t> handles;
CUmemGenericAllocationHandle next_handle = 1;
struct FakeEvent {
  std::int64_t done = 0;
};
FakeEvent* of(cudaEvent_t event) { return reinterpret_cast<FakeEvent*>(event); }

bool take(std::size_t bytes) {
  if (fake_device.used + bytes > fake_device.capacity) return false;
  fake_device.used += bytes;
  return true;
}

CUresult mem_create(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp*, unsigned long long) {
  if (!take(size)) return CUDA_ERROR_OUT_OF_MEMORY;
  handles[*handle = next_handle++] = size;
  return CUDA_SUCCESS;
}
CUresult mem_release(CUmemGenericAllocationHandle handle) {
  fake_device.used -= handles.at(handle);
  handles.erase(handle);
  return CUDA_SUCCESS;
}
CUresult address_reserve(CUdeviceptr* ptr, size_t size, size_t, CUdeviceptr, unsigned long long) {
  *ptr = next_address;
  next_address += size + (std::uintptr_t{1} << 30);
  return CUDA_SUCCESS;
}
CUresult granularity(size_t* bytes, const CUmemAllocationProp*, CUmemAllocationGranularity_flags) {
  *bytes = 2 << 20;
  return CUDA_SUCCESS;
}
CUresult attribute(int* value, CUdevice_attribute, CUdevice) { return *value = 0, CUDA_SUCCESS; }
CUresult error_string(CUresult, const char** text) { return *text = "fake", CUDA_SUCCESS; }
CUresult nothing() { return CUDA_SUCCESS; }
}  // namespace

extern "C" {
cudaError_t cudaMalloc(void** ptr, size_t bytes) {
  if (!take(bytes)) return cudaErrorMemoryAllocation;
  *ptr = reinterpret_cast<void*>(next_address);
  allocated[next_address] = bytes;
  next_address += bytes;
  return cudaSuccess;
}
cudaError_t cudaFree(void* ptr) {
  const auto found = allocated.find(reinterpret_cast<std::uintptr_t>(ptr));
  if (found == allocated.end()) return cudaSuccess;
  fake_device.used -= found->second;
  allocated.erase(found);
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* free, size_t* total) {
  *free = fake_device.capacity - fake_device.used, *total = fake_device.capacity;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int) {
  std::memset(properties, 0, sizeof *properties);
  properties->totalGlobalMem = fake_device.capacity;
  properties->major = 9;
  return cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new FakeEvent);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  of(event)->done = fake_device.busy[reinterpret_cast<std::uintptr_t>(stream) / 4096 - 1];
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t event) {
  return of(event)->done <= fake_device.now ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (of(event)->done > fake_device.now) fake_device.now = of(event)->done;
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete of(event), cudaSuccess; }
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "fake"; }
const char* cudaGetErrorName(cudaError_t) { return "fake"; }
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* status) {
  return *status = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = 13020, cudaSuccess; }
cudaError_t cudaDeviceCanAccessPeer(int* can, int, int) { return *can = 0, cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) { return *least = *greatest = 0, cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  static const std::map<std::string_view, void*> known{
      {"cuMemCreate", reinterpret_cast<void*>(mem_create)},
      {"cuMemRelease", reinterpret_cast<void*>(mem_release)},
      {"cuMemAddressReserve", reinterpret_cast<void*>(address_reserve)},
      {"cuMemGetAllocationGranularity", reinterpret_cast<void*>(granularity)},
      {"cuDeviceGetAttribute", reinterpret_cast<void*>(attribute)},
      {"cuGetErrorString", reinterpret_cast<void*>(error_string)}};
  const auto found = known.find(name);
  *function = found != known.end() ? found->second : reinterpret_cast<void*>(nothing);
  if (result != nullptr) *result = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
}
