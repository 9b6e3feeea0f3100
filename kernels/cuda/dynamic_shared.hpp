#pragma once
#include <cuda_runtime.h>

namespace foreshard::kernels::cuda {

/// The block's dynamic shared memory, aligned to 16 bytes: as much as its launch asked for.
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ uint4 dynamic_shared_memory[];
  return reinterpret_cast<T*>(dynamic_shared_memory);
}

}  // namespace foreshard::kernels::cuda
