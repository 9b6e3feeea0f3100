#pragma once
#include <cuda_runtime.h>

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace foreshard::kernels::cuda {

/// Throws LibraryError if a call of the CUDA runtime failed; `call` is its name.
inline void check(cudaError_t error, std::string_view call) {
  if (error == cudaSuccess) return;
  throw LibraryError(std::string(call) + ": " + cudaGetErrorName(error) + " (" + cudaGetErrorString(error) + ")");
}

}  // namespace foreshard::kernels::cuda
