#pragma once
#include <cuda_runtime.h>

/// Stands before the header of this name in kernels/cuda.
namespace foreshard::kernels::cuda {

template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(rehearsal::dynamic_shared_memory());
}

}  // namespace foreshard::kernels::cuda
