#pragma once
#include "kernels/cuda/dynamic_shared.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/queue.hpp"
#include "kernels/cuda/warp.hpp"

/// Normalisation of rows: x̂ = (x − mean)·rstd if `centred`, else x·rstd. A warp a row, which lies in shared memory
/// between its passes, each lane's numbers read back by that lane. Bound by memory: x and the residual are read once,
/// the sum and y written once.
namespace foreshard::kernels::cuda {

inline constexpr int norm_warps = 8, norm_threads = norm_warps * warp_lanes;

/// Calls f(at) for each of this lane's packs of n columns.
template <int n, class F>
__device__ inline void for_packs(std::int64_t cols, F f) {
  for (std::int64_t at = threadIdx.x % warp_lanes * n; at < cols; at += warp_lanes * n) f(at);
}

template <class T>
struct NormForward {
  Rows o;
  float epsilon;
  const T *x, *residual, *gain, *bias;
  T *sum, *y;
  float *mean, *rstd;
};

/// Brings a row to shared memory, after the residual is added; the sum of this lane's numbers.
template <int n, class T>
__device__ inline float gather_row(const NormForward<T>& a, std::int64_t first, T* staged) {
  float total = 0;
  for_packs<n>(a.o.cols, [&](std::int64_t at) {
    Pack<T, n> v = load<n>(a.x + first + at);
    if (a.residual) {
      const Pack<T, n> r = load<n>(a.residual + first + at);
      for (int k = 0; k < n; ++k) v.v[k] = narrowed<T>(widened(v.v[k]) + widened(r.v[k]));
      store(a.sum + first + at, v);
    }
    for (int k = 0; k < n; ++k) total += widened(v.v[k]);
    store(staged + at, v);
  });
  return total;
}

template <int n, class T>
__device__ inline float squares_about(std::int64_t cols, const T* staged, float mean) {
  float total = 0;
  for_packs<n>(cols, [&](std::int64_t at) {
    const Pack<T, n> v = load<n>(staged + at);
    for (int k = 0; k < n; ++k) total += (widened(v.v[k]) - mean) * (widened(v.v[k]) - mean);
  });
  return total;
}

template <bool centred, int n, class T>
__global__ void normalize_rows(NormForward<T> a) {
  const int warp = threadIdx.x / warp_lanes;
  const std::int64_t row = std::int64_t{blockIdx.x} * (blockDim.x / warp_lanes) + warp, first = row * a.o.cols;
  if (row >= a.o.rows) return;
  T* staged = dynamic_shared<T>() + warp * a.o.cols;
  const float total = gather_row<n>(a, first, staged);
  const float mean = centred ? warp_sum(total) / static_cast<float>(a.o.cols) : 0.0F;
  const float squares = warp_sum(squares_about<n>(a.o.cols, staged, mean));
  const float rstd = 1 / sqrtf(squares / static_cast<float>(a.o.cols) + a.epsilon);
  for_packs<n>(a.o.cols, [&](std::int64_t at) {
    Pack<T, n> v = load<n>(staged + at);
    const Pack<T, n> gain = load<n>(a.gain + at);
    Pack<T, n> bias{};
    if (a.bias) bias = load<n>(a.bias + at);
    for (int k = 0; k < n; ++k) {
      const float normed = (widened(v.v[k]) - mean) * rstd * widened(gain.v[k]);
      v.v[k] = narrowed<T>(a.bias ? normed + widened(bias.v[k]) : normed);
    }
    store(a.y + first + at, v);
  });
  if (threadIdx.x % warp_lanes != 0) return;
  if (centred) a.mean[row] = mean;
  a.rstd[row] = rstd;
}

/// Eight rows a block, or one where they are too wide for that.
template <bool centred, class T>
void normalize(const Queue& queue, const NormForward<T>& a) {
  if (a.o.rows == 0) return;
  constexpr int n = pack_of<T>;
  const bool packs = a.o.cols % n == 0 && aligned(a.x, a.residual, a.gain, a.bias, a.sum, a.y);
  const std::size_t row_bytes = static_cast<std::size_t>(a.o.cols) * sizeof(T);
  const int warps = row_bytes * norm_warps <= common_shared_bytes ? norm_warps : 1;
  launch(packs ? normalize_rows<centred, n, T> : normalize_rows<centred, 1, T>,
         static_cast<unsigned>(blocks_for(a.o.rows, warps)), warps * warp_lanes, warps * row_bytes, queue.stream, a);
}

}  // namespace foreshard::kernels::cuda
