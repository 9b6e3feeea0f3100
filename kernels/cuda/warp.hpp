#pragma once
#include <cuda_runtime.h>

/// Sums and maxima over the lanes of a warp or the threads of a block, along one tree: the same bits every time.
namespace foreshard::kernels::cuda {

inline constexpr int warp_lanes = 32;
inline constexpr unsigned all_lanes = 0xFFFFFFFFU;

/// In every lane, the combination of all lanes' values.
template <class T, class Combine>
__device__ inline T over_warp(T value, Combine combine) {
  for (int mask = warp_lanes / 2; mask > 0; mask /= 2) value = combine(value, __shfl_xor_sync(all_lanes, value, mask));
  return value;
}

struct Sum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
struct Larger {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a > b ? a : b;
  }
};

__device__ inline float warp_sum(float value) { return over_warp(value, Sum{}); }

/// In every thread of a block of `threads`, which all call it, the combination of their values.
template <int threads, class T, class Combine>
__device__ inline T over_block(T value, Combine combine) {
  constexpr int warps = threads / warp_lanes;
  __shared__ T of_warps[warps];
  value = over_warp(value, combine);
  __syncthreads();  // what an earlier call left is read
  if (threadIdx.x % warp_lanes == 0) of_warps[threadIdx.x / warp_lanes] = value;
  __syncthreads();
  T result = of_warps[0];
  for (int w = 1; w < warps; ++w) result = combine(result, of_warps[w]);
  return result;
}

}  // namespace foreshard::kernels::cuda
