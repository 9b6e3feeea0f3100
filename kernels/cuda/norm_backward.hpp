#pragma once
#include <algorithm>

#include "kernels/cuda/column_sums.hpp"
#include "kernels/cuda/norm.hpp"

/// Gradients through a norm. A block takes eight rows at a time: first a warp a row finds the row's means, then each
/// thread goes down its columns of the eight rows, writes dx and adds to its columns' sums, which lie in shared memory.
/// Bound by memory: dy, x and the residual's gradient are read from device memory once (the second look is at the
/// caches), dx is written once; partial sums of at most 264 blocks are written and read once.
namespace foreshard::kernels::cuda {

inline constexpr std::int64_t most_norm_parts = 264;

template <class T>
struct NormBackward {
  Rows o;
  const T *dy, *x, *gain;
  const float *mean, *rstd;  ///< null mean: 0
  const T* residual_grad;
  T* dx;
  float* partial = nullptr;  ///< per block o.cols sums for dgain, and as many for dbias if centred; null: not wanted
};

/// What the gradient of a row needs: dx = rstd·(g − mean_g − x̂·mean_gx) with g = dy·gain.
struct RowMeans {
  float mean, rstd, mean_g, mean_gx;
};

template <bool centred, int n, class T>
__device__ inline RowMeans means_of(const NormBackward<T>& a, std::int64_t row) {
  RowMeans m = {centred ? a.mean[row] : 0.0F, a.rstd[row], 0, 0};
  if (!a.dx) return m;
  const std::int64_t first = row * a.o.cols;
  float sum_g = 0, sum_gx = 0;
  for_packs<n>(a.o.cols, [&](std::int64_t at) {
    const Pack<T, n> dy = load<n>(a.dy + first + at), x = load<n>(a.x + first + at), gain = load<n>(a.gain + at);
    for (int k = 0; k < n; ++k) {
      const float g = widened(dy.v[k]) * widened(gain.v[k]);
      sum_g += g;
      sum_gx += g * ((widened(x.v[k]) - m.mean) * m.rstd);
    }
  });
  const float scale = 1 / static_cast<float>(a.o.cols);
  if (centred) m.mean_g = warp_sum(sum_g) * scale;
  m.mean_gx = warp_sum(sum_gx) * scale;
  return m;
}

/// One thread's n columns from `at` on of rows [top, bottom).
template <bool centred, int n, class T>
__device__ inline void differentiate_columns(const NormBackward<T>& a, std::int64_t top, std::int64_t bottom,
                                             const RowMeans* means, std::int64_t at, float* sums) {
  float dgain[n] = {}, dbias[n] = {};
  const Pack<T, n> gain = load<n>(a.gain + at);
  for (std::int64_t row = top; row < bottom; ++row) {
    const std::int64_t i = row * a.o.cols + at;
    const RowMeans m = means[row - top];
    const Pack<T, n> dy = load<n>(a.dy + i), x = load<n>(a.x + i);
    Pack<T, n> residual{}, dx;
    if (a.residual_grad) residual = load<n>(a.residual_grad + i);
    for (int k = 0; k < n; ++k) {
      const float d = widened(dy.v[k]), normed = (widened(x.v[k]) - m.mean) * m.rstd;
      const float through = m.rstd * (d * widened(gain.v[k]) - m.mean_g - normed * m.mean_gx);
      dx.v[k] = narrowed<T>(a.residual_grad ? through + widened(residual.v[k]) : through);
      dgain[k] += d * normed;
      dbias[k] += d;
    }
    if (a.dx) store(a.dx + i, dx);
  }
  if (!a.partial) return;
  for (int k = 0; k < n; ++k) {
    sums[at + k] += dgain[k];
    if (centred) sums[a.o.cols + at + k] += dbias[k];
  }
}

template <bool centred, int n, class T>
__global__ void differentiate_norm(NormBackward<T> a) {
  constexpr int column_n = n / 4 > 0 ? n / 4 : 1;  // so that all threads have columns
  constexpr int vectors = centred ? 2 : 1;
  __shared__ RowMeans means[norm_warps];
  float* sums = dynamic_shared<float>();
  for (std::int64_t j = threadIdx.x; a.partial && j < vectors * a.o.cols; j += norm_threads) sums[j] = 0;
  const int warp = threadIdx.x / warp_lanes;
  for (std::int64_t top = std::int64_t{blockIdx.x} * norm_warps; top < a.o.rows; top += gridDim.x * norm_warps) {
    const std::int64_t bottom = min(a.o.rows, top + norm_warps);
    __syncthreads();
    if (top + warp < bottom) {
      const RowMeans m = means_of<centred, n>(a, top + warp);
      if (threadIdx.x % warp_lanes == 0) means[warp] = m;
    }
    __syncthreads();
    for (std::int64_t at = threadIdx.x * column_n; at < a.o.cols; at += norm_threads * column_n)
      differentiate_columns<centred, column_n>(a, top, bottom, means, at, sums);
  }
  __syncthreads();
  for (std::int64_t j = threadIdx.x; a.partial && j < vectors * a.o.cols; j += norm_threads)
    a.partial[blockIdx.x * vectors * a.o.cols + j] = sums[j];
}

template <bool centred, class T, class Grad>
void differentiate_norm_rows(const Queue& queue, NormBackward<T> a, bool accumulate, Grad* dgain, Grad* dbias) {
  constexpr int n = pack_of<T>, vectors = centred ? 2 : 1;
  const std::int64_t parts = std::clamp<std::int64_t>(blocks_for(a.o.rows, norm_warps), 1, most_norm_parts),
                     stride = vectors * a.o.cols;
  const bool packs = a.o.cols % n == 0 && aligned(a.dy, a.x, a.gain, a.residual_grad, a.dx), sums = dgain || dbias;
  if (sums) a.partial = queue.partial<float>(parts * stride);
  const std::size_t shared = sums ? static_cast<std::size_t>(stride) * sizeof(float) : 0;
  launch(packs ? differentiate_norm<centred, n, T> : differentiate_norm<centred, 1, T>, static_cast<unsigned>(parts),
         norm_threads, shared, queue.stream, a);
  total_columns(queue, parts, a.o.cols, stride, a.partial, accumulate, dgain);
  if constexpr (centred) total_columns(queue, parts, a.o.cols, stride, a.partial + a.o.cols, accumulate, dbias);
}

}  // namespace foreshard::kernels::cuda
