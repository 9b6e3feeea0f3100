#pragma once
#include <cstddef>
#include <utility>

#include "kernels/cuda/check.hpp"

namespace foreshard::kernels::cuda {

/// Shared memory that a block may have without being asked for by function.
inline constexpr std::size_t common_shared_bytes = 48 * 1024;

/// Queues a kernel on the stream; throws LibraryError if that cannot be done. Errors of its run show later.
template <class... Parameters, class... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  if (shared_bytes > common_shared_bytes)
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          "cudaFuncSetAttribute");
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), "cudaLaunchKernelEx");
}

}  // namespace foreshard::kernels::cuda
