#include "engine/cuda/memory.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cstring>

#include "base/error.hpp"
#include "base/units.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {

using kernels::cuda::check;

namespace {

[[noreturn]] void refuse(std::int64_t size_bytes) {
  std::size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  throw InputError(ExitCode::infeasible,
                   fmt::format("cudaMalloc of {}: the device has {} free of {}\n  {}", bytes_text(size_bytes),
                               bytes_text(static_cast<std::int64_t>(free)),
                               bytes_text(static_cast<std::int64_t>(total)), what_needs_less_memory));
}

}  // namespace

std::byte* device_bytes(std::int64_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  void* data = nullptr;
  const auto size = static_cast<std::size_t>(size_bytes);
  const cudaError_t error = cudaMalloc(&data, size);
  if (error == cudaErrorMemoryAllocation) refuse(size_bytes);
  check(error, "cudaMalloc");
  check(cudaMemset(data, 0, size), "cudaMemset");
  check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");  // other streams do not wait for the clearing
  return static_cast<std::byte*>(data);
}

std::byte* pinned_bytes(std::int64_t size_bytes) {
  if (size_bytes == 0) return nullptr;
  void* data = nullptr;
  check(cudaHostAlloc(&data, static_cast<std::size_t>(size_bytes), cudaHostAllocMapped | cudaHostAllocPortable),
        "cudaHostAlloc");
  std::memset(data, 0, static_cast<std::size_t>(size_bytes));
  return static_cast<std::byte*>(data);
}

void free_device(std::byte* data) noexcept { cudaFree(data); }
void free_pinned(std::byte* data) noexcept { cudaFreeHost(data); }

}  // namespace foreshard::engine::cuda
