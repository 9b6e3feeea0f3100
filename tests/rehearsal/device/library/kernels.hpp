#pragma once
#include <cuda_runtime.h>

/// Kernels for tests of the emulation.
namespace rehearsal {

/// y = the sum of the block's x, by a tree in static shared memory; without barriers where not `waits`.
__global__ void sum_by_tree(const float* x, float* y, bool waits);
/// y[i] = what lies in static and in dynamic shared memory before anyone wrote it.
__global__ void read_unwritten(float* y, bool writes);
/// y[i] = sum over its warp of x.
__global__ void sum_of_warp(const float* x, float* y);

}  // namespace rehearsal
