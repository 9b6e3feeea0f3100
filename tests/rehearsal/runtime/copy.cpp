#include <fmt/format.h>

#include <cstring>

#include "rehearsal/runtime/capture.hpp"
#include "rehearsal/runtime/memory.hpp"
#include "rehearsal/runtime/state.hpp"
#include "rehearsal/runtime/stream.hpp"

namespace rehearsal {
namespace {

bool on_device(const void* at) { return Memory::instance().is_device_address(at); }
bool pageable(const void* at) { return !on_device(at) && Memory::instance().find(at) == nullptr; }

/// What is wrong with one side of a copy, said to be on the device or on the host.
std::string side_problem(const char* side, const void* at, std::size_t bytes, bool said_on_device, bool said) {
  if (said && on_device(at) != said_on_device)
    return fmt::format("{} {} is said to be on the {}, but is {}", side, at, said_on_device ? "device" : "host",
                       Memory::instance().describe(at));
  if (pageable(at)) return {};
  const std::string problem = Memory::instance().problem(at, bytes, current_device());
  return problem.empty() ? problem : fmt::format("{}: {}", side, problem);
}

bool on_device(cudaMemcpyKind kind, bool to) {
  return kind == cudaMemcpyDeviceToDevice || kind == (to ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost);
}

cudaError_t check(const char* name, std::initializer_list<std::string> problems) {
  for (const std::string& problem : problems)
    if (!problem.empty()) return report(fmt::format("{}: {}", name, problem)), cudaErrorInvalidValue;
  return cudaSuccess;
}

cudaError_t copy(const char* name, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                 cudaStream_t stream, bool wait) {
  if (bytes == 0) return cudaSuccess;
  const bool said = kind != cudaMemcpyDefault;
  const cudaError_t error = check(name, {side_problem("destination", to, bytes, on_device(kind, true), said),
                                         side_problem("source", from, bytes, on_device(kind, false), said)});
  if (error != cudaSuccess) return error;
  // As CUDA does, a copy of pageable memory returns only when it is done.
  const bool waits = wait || pageable(to) || pageable(from);
  if (waits)
    if (const cudaError_t forbidden = unsafe_in_capture(); forbidden != cudaSuccess) return forbidden;
  if (const cudaError_t queued = queue(stream, [=] { std::memcpy(Memory::real(to), Memory::real(from), bytes); });
      queued != cudaSuccess)
    return queued;
  if (waits) stream_of(stream)->synchronise();
  return waits ? error_of(current_device()) : cudaSuccess;
}

cudaError_t set(const char* name, void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  if (pageable(to)) return check(name, {fmt::format("{} is {}", to, Memory::instance().describe(to))});
  const cudaError_t error = check(name, {side_problem("destination", to, bytes, true, false)});
  return error != cudaSuccess ? error : queue(stream, [=] { std::memset(Memory::real(to), value, bytes); });
}

}  // namespace
}  // namespace rehearsal

using namespace rehearsal;

extern "C" {
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&] {
    if (const cudaError_t error = unsafe_in_capture(); error != cudaSuccess) return error;
    return copy("cudaMemcpy", to, from, bytes, kind, nullptr, true);
  });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] { return copy("cudaMemcpyAsync", to, from, bytes, kind, stream, false); });
}
cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return call("cudaMemset", [&] {
    if (const cudaError_t error = unsafe_in_capture(); error != cudaSuccess) return error;
    return set("cudaMemset", to, value, bytes, nullptr);
  });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] { return set("cudaMemsetAsync", to, value, bytes, stream); });
}

/// As CUDA does, waits for all work of the device. Also after an error, since it must be possible to clean up.
cudaError_t cudaFree(void* at) {
  if (devices() == 0) return remember(cudaErrorInsufficientDriver);
  if (const cudaError_t error = unsafe_in_capture(); error != cudaSuccess) return remember(error);
  const Memory::Range* range = Memory::instance().find(at);
  if (range != nullptr) synchronise_device(range->device);
  const cudaError_t error = Memory::instance().free(at);
  if (error != cudaSuccess) report(fmt::format("cudaFree: {} is no allocation of a device", at));
  return remember(error != cudaSuccess ? error : error_of(current_device()));
}
cudaError_t cudaMalloc(void** at, std::size_t bytes) {
  return call("cudaMalloc", [&] {
    if (const cudaError_t error = unsafe_in_capture(); error != cudaSuccess) return error;
    return Memory::instance().allocate(current_device(), bytes, at);
  });
}
cudaError_t cudaHostAlloc(void** at, std::size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&] {
    if (const cudaError_t error = unsafe_in_capture(); error != cudaSuccess) return error;
    return Memory::instance().allocate_pinned(bytes, at);
  });
}
cudaError_t cudaFreeHost(void* at) {
  if (devices() == 0) return remember(cudaErrorInsufficientDriver);
  if (const cudaError_t error = unsafe_in_capture(); error != cudaSuccess) return remember(error);
  const cudaError_t error = Memory::instance().free_pinned(at);
  return remember(error != cudaSuccess ? error : error_of(current_device()));
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return call("cudaHostGetDevicePointer", [&] {
    if (on_device(host) || pageable(host)) return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  return call("cudaMemGetInfo", [&] {
    const Memory& memory = Memory::instance();
    *total = memory.total(current_device());
    *free = *total - memory.used(current_device());
    return cudaSuccess;
  });
}
}
