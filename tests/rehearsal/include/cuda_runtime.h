#pragma once
#include <array>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "cuda_runtime_api.h"
#include "device_functions.h"
#include "rehearsal/runtime/launch.hpp"

inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

template <class T>
cudaError_t cudaMalloc(T** at, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(at), bytes);
}
template <class T>
cudaError_t cudaHostAlloc(T** at, std::size_t bytes, unsigned flags) {
  return cudaHostAlloc(reinterpret_cast<void**>(at), bytes, flags);
}
template <class T>
cudaError_t cudaHostGetDevicePointer(T** device, void* host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void**>(device), host, flags);
}
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute attribute, int value) {
  return cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), attribute, value);
}

namespace rehearsal {

/// What fills gaps in structures is cleared: with the members beside it, it could look like an address. An empty one
/// has its place in a tuple among the bytes of others.
template <class T>
void clear_padding(T& value) {
  if constexpr (!std::is_empty_v<T>) __builtin_clear_padding(&value);
}

}  // namespace rehearsal

/// Arguments are copied now, as the kernel's parameters.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "parameters of a kernel are copied as bytes");
  auto values = std::make_shared<std::tuple<Parameters...>>(static_cast<Parameters>(arguments)...);
  const auto described = std::apply(
      [](auto&... value) {
        (rehearsal::clear_padding(value), ...);
        return std::array<rehearsal::Argument, sizeof...(value)>{
            {{&value, sizeof value, std::is_pointer_v<std::remove_reference_t<decltype(value)>>}...}};
      },
      *values);
  return rehearsal::launch(*config, reinterpret_cast<const void*>(kernel), described,
                           [kernel, values] { std::apply(kernel, *values); });
}
