#pragma once
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <vector>

#include "rehearsal/control.hpp"

namespace rehearsal {

/// Numbers on the current device.
template <class T>
class Array {
 public:
  explicit Array(std::size_t count) : count_(count) { EXPECT_EQ(cudaMalloc(&data_, count * sizeof(T)), cudaSuccess); }
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice), cudaSuccess);
  }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;
  ~Array() { cudaFree(data_); }

  T* data() const { return data_; }
  std::vector<T> values() const {
    std::vector<T> values(count_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost), cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

/// Starts a kernel on the default stream.
template <class... Parameters, class... Arguments>
cudaError_t start(void (*kernel)(Parameters...), dim3 grid, dim3 block, Arguments... arguments) {
  cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = block};
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}
template <class... Parameters, class... Arguments>
cudaError_t run(void (*kernel)(Parameters...), dim3 grid, dim3 block, Arguments... arguments) {
  const cudaError_t error = start(kernel, grid, block, arguments...);
  return error != cudaSuccess ? error : cudaDeviceSynchronize();
}

}  // namespace rehearsal
