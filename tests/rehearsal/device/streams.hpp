#pragma once
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

namespace rehearsal {

class Queue {
 public:
  Queue() { EXPECT_EQ(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, 0), cudaSuccess); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming) {
    EXPECT_EQ(cudaEventCreateWithFlags(&event_, flags), cudaSuccess);
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

template <class... Parameters, class... Arguments>
cudaError_t start_on(cudaStream_t stream, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                     Arguments... arguments) {
  cudaLaunchConfig_t config = {.gridDim = grid, .blockDim = block, .stream = stream};
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

__global__ inline void set_to(int* x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
__global__ inline void add_to(int* x, int value) { x[blockIdx.x * blockDim.x + threadIdx.x] += value; }
__global__ inline void copy_to(const int* from, int* to) {
  to[blockIdx.x * blockDim.x + threadIdx.x] = from[blockIdx.x * blockDim.x + threadIdx.x];
}

}  // namespace rehearsal
