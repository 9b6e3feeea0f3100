#include "rehearsal/device/library/kernels.hpp"

#include "kernels/cuda/dynamic_shared.hpp"

namespace rehearsal {

__global__ void sum_by_tree(const float* x, float* y, bool waits) {
  __shared__ float part[256];
  part[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (waits) __syncthreads();
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
  }
  if (threadIdx.x == 0) y[blockIdx.x] = part[0];
}

__global__ void read_unwritten(float* y, bool writes) {
  __shared__ float fixed[32];
  if (writes) fixed[threadIdx.x] = 1;
  y[threadIdx.x] = fixed[threadIdx.x];
  y[blockDim.x + threadIdx.x] = foreshard::kernels::cuda::dynamic_shared<float>()[threadIdx.x];
}

__global__ void sum_of_warp(const float* x, float* y) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = x[i];
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xFFFFFFFFU, sum, mask);
  y[i] = sum;
}

}  // namespace rehearsal
