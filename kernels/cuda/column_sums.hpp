#pragma once
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/queue.hpp"

namespace foreshard::kernels::cuda {

inline constexpr int total_cols = 32, total_rows = 8;

/// to[j] = (accumulate ? to[j] : 0) + Σ over parts of partial[part·stride + j]: eight threads a column take every
/// eighth part, in order, and their sums are added in order.
template <class To>
__global__ void add_parts(std::int64_t parts, std::int64_t cols, std::int64_t stride, const float* partial,
                          bool accumulate, To* to) {
  __shared__ float sums[total_rows][total_cols];
  const int lane = threadIdx.x % total_cols, row = threadIdx.x / total_cols;
  const std::int64_t j = std::int64_t{blockIdx.x} * total_cols + lane;
  float sum = 0;
  if (j < cols)
    for (std::int64_t part = row; part < parts; part += total_rows) sum += partial[part * stride + j];
  sums[row][lane] = sum;
  __syncthreads();
  if (row > 0 || j >= cols) return;
  float total = accumulate ? widened(to[j]) : 0.0F;
  for (int r = 0; r < total_rows; ++r) total += sums[r][lane];
  to[j] = narrowed<To>(total);
}

/// Reads the partial sums once. An absent `to` is not computed.
template <class To>
void total_columns(const Queue& queue, std::int64_t parts, std::int64_t cols, std::int64_t stride, const float* partial,
                   bool accumulate, To* to) {
  if (!to) return;
  launch(add_parts<To>, static_cast<unsigned>(blocks_for(cols, total_cols)), total_cols * total_rows, 0, queue.stream,
         parts, cols, stride, partial, accumulate, to);
}

}  // namespace foreshard::kernels::cuda
