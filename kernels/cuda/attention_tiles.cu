// Forward attention on tensor cores, after FlashAttention-2 (Dao 2023, arXiv 2307.08691): a block has 64 or 128 queries
// of a head, each warp 16 or 32 of them, and goes along the keys with a running maximum and sum of each row; scores
// never leave registers. The next tile of keys is brought while values are multiplied, and the other way round. Bound
// by tensor cores (4·seq²/2·width operations a head) and by reads of shared memory, for which 32 rows a warp are: W·N
// numbers are read for 2·32·W·N operations.
#include <cfloat>
#include <cmath>

#include "kernels/cuda/attention_tiles.hpp"

namespace foreshard::kernels::cuda {
namespace {

template <int W>
inline constexpr int warp_tiles = 2;  ///< of 16 queries
template <int W>
inline constexpr int keys_of = W > 64 ? 32 : 64;
template <int W>
inline constexpr int queries_of = 16 * warp_tiles<W>* tile_warps;

/// Of each row of a warp's block that this lane has a part of: the highest score so far and the sum of this lane's
/// exponentials below it. A row may see none of the first keys: its highest is a number all the same.
template <int M>
struct Rescaling {
  float highest[M][2], total[M][2];

  __device__ Rescaling() {
    for (int m = 0; m < M; ++m)
      for (int h = 0; h < 2; ++h) {
        highest[m][h] = -FLT_MAX;
        total[m][h] = 0;
      }
  }
  /// Makes scores exponentials, and brings what was summed before to the same scale.
  template <int N, int W>
  __device__ void apply(Block<M, N>& scores, Block<M, W>& sums) {
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float before = highest[m][h], now = fmaxf(before, row_maximum(scores.v[m], h));
        const float rescale = exp2f(before - now);
        highest[m][h] = now;
        total[m][h] = total[m][h] * rescale + exponentials(scores.v[m], h, now);
#pragma unroll
        for (auto& eight : sums.v[m]) {
          eight[2 * h] *= rescale;
          eight[2 * h + 1] *= rescale;
        }
      }
  }
  /// Divides by the rows' sums; what is left in `total` is their logarithm of Σ exp.
  template <int W>
  __device__ void finish(Block<M, W>& sums) {
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const float all = over_row(total[m][h], Sum{});
#pragma unroll
        for (auto& eight : sums.v[m]) {
          eight[2 * h] /= all;
          eight[2 * h + 1] /= all;
        }
        total[m][h] = highest[m][h] * ln_2 + logf(all);
      }
  }

 private:
  /// Over the four lanes that share a row.
  template <class Combine>
  static __device__ float over_row(float value, Combine combine) {
    value = combine(value, __shfl_xor_sync(all_lanes, value, 1));
    return combine(value, __shfl_xor_sync(all_lanes, value, 2));
  }
  template <int tiles>
  static __device__ float row_maximum(const float (&v)[tiles][4], int h) {
    float result = -INFINITY;
#pragma unroll
    for (int n = 0; n < tiles; ++n) result = fmaxf(result, fmaxf(v[n][2 * h], v[n][2 * h + 1]));
    return over_row(result, Larger{});
  }
  template <int tiles>
  static __device__ float exponentials(float (&v)[tiles][4], int h, float highest) {
    float sum = 0;
#pragma unroll
    for (int n = 0; n < tiles; ++n)
      for (int i = 2 * h; i < 2 * h + 2; ++i) sum += v[n][i] = exp2f(v[n][i] - highest);
    return sum;
  }
};

template <int W, class T>
__global__ void __launch_bounds__(tile_threads, 2) attend_tile(AttentionForward<T> a, bool packs) {
  constexpr int M = warp_tiles<W>, N = keys_of<W>, Q = queries_of<W>;
  const Attention& o = a.o;
  const std::int64_t head = blockIdx.y, sequence = blockIdx.z,
                     first = (gridDim.x - 1 - std::int64_t{blockIdx.x}) * Q;  // those with most keys first
  const Qkv<const T> in = head_of(o, a.in, sequence, head);
  const Source<T> keys{in.k, in.kv_stride, o.seq, o.width, packs}, values{in.v, in.kv_stride, o.seq, o.width, packs};
  T *q = dynamic_shared<T>(), *k = q + Q * row_elements<W>, *v = k + N * row_elements<W>;
  bring<W, Q>(Source<T>{in.q, in.q_stride, o.seq, o.width, packs}.from(first), q);
  const std::int64_t begin = o.first_seen_by(first) / N * N, end = o.causal ? min(o.seq, first + Q) : o.seq;
  bring<W, N>(keys.from(begin), k);
  commit_copies();

  const int warp_row = threadIdx.x / warp_lanes * 16 * M;
  const ScoreOf<T> score(o, a.bias, head);
  Block<M, W> y;
  Rescaling<M> rescaling;
  y.clear();
  for (std::int64_t at = begin; at < end; at += N) {
    wait_for_copies<0>();
    __syncthreads();  // these keys are there, and the values before them are done with
    bring<W, N>(values.from(at), v);
    commit_copies();
    Block<M, N> scores;
    multiply_rows<W>(scores, q, warp_row, k);
    wait_for_copies<0>();
    __syncthreads();
    if (at + N < end) bring<W, N>(keys.from(at + N), k);
    commit_copies();
    make_scores<true>(scores, score, o, static_cast<int>(at - first) - warp_row, o.seq - at);
    rescaling.apply(scores, y);
    add_product<W>(y, scores, v);
  }
  rescaling.finish(y);
  write(y, first + warp_row, o.seq, o.width, a.y + output_at(o, sequence, head), o.heads * o.width, 1.0F);
  if (threadIdx.x % 4 != 0) return;
  for (int m = 0; m < M; ++m)
    for (int h = 0; h < 2; ++h) {
      const std::int64_t i = first + warp_row + 16 * m + 8 * h + threadIdx.x % warp_lanes / 4;
      if (i < o.seq) a.log_sum_exp[statistic_at(o, sequence, head) + i] = rescaling.total[m][h];
    }
}

template <class T>
bool attend(const Queue& queue, const AttentionForward<T>& a) {
  return by_width(a.o.width, [&]<int W>(std::integral_constant<int, W>) {
    const dim3 grid(static_cast<unsigned>(blocks_for(a.o.seq, queries_of<W>)), static_cast<unsigned>(a.o.heads),
                    static_cast<unsigned>(a.o.batch));
    launch(attend_tile<W, T>, grid, tile_threads, tile_bytes<W, T>(queries_of<W> + 2 * keys_of<W>), queue.stream, a,
           in_packs(a.o, a.in, static_cast<const T*>(nullptr)));
  });
}

}  // namespace

bool attend_in_tiles(const Queue&, const AttentionForward<float>&) { return false; }
bool attend_in_tiles(const Queue& queue, const AttentionForward<__nv_bfloat16>& a) { return attend(queue, a); }
bool attend_in_tiles(const Queue& queue, const AttentionForward<__half>& a) { return attend(queue, a); }

}  // namespace foreshard::kernels::cuda
