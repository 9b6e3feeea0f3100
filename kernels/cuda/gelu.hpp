#pragma once
#include <cuda_runtime.h>

namespace foreshard::kernels::cuda {

/// GELU in its tanh form: with u = √(2/π)·(x + 0.044715·x³), 0.5·(1 + tanh u) = 1 / (1 + e^−2u).
struct GeluGate {
  static constexpr float linear = 2 * 0.797884560802865356F, cubic = linear * 0.044715F;

  static __device__ float part(float x) { return 1.0F / (1.0F + expf(-x * (linear + cubic * x * x))); }
  static __device__ float value(float x) { return x * part(x); }
  static __device__ float slope(float x) {
    const float s = part(x);
    return s + x * s * (1.0F - s) * (linear + 3 * cubic * x * x);
  }
};

}  // namespace foreshard::kernels::cuda
