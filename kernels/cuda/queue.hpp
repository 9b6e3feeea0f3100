#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/error.hpp"

namespace foreshard::kernels::cuda {

/// Where kernels are queued, and the memory for their partial sums: of one kernel family at a time, in order of queue.
struct Queue {
  cudaStream_t stream = nullptr;
  std::byte* workspace = nullptr;
  std::int64_t workspace_bytes = 0;

  template <class T>
  T* partial(std::int64_t count) const {
    FORESHARD_EXPECT(count * static_cast<std::int64_t>(sizeof(T)) <= workspace_bytes,
                     "partial sums of " + std::to_string(count * static_cast<std::int64_t>(sizeof(T))) +
                         " bytes do not fit into a workspace of " + std::to_string(workspace_bytes));
    return reinterpret_cast<T*>(workspace);
  }
};

}  // namespace foreshard::kernels::cuda
