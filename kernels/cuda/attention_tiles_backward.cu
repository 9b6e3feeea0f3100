// Gradients of attention on tensor cores, without atomic sums: one kernel has a tile of queries a block and goes along
// the keys for dq, the other a tile of keys and goes along the queries, and the heads of its group, for dk and dv.
// Scores are made twice for that: seven products of tiles instead of five, and the same bits every time. In the second,
// tiles are transposed, so that probabilities come to lie as the next product needs them. Bound by tensor cores and
// reads of shared memory.
#include <cmath>

#include "kernels/cuda/attention_tiles.hpp"

namespace foreshard::kernels::cuda {
namespace {

template <int W>
inline constexpr int warp_tiles = W > 64 ? 1 : 2;  ///< of 16 rows
template <int W>
inline constexpr int rows_of = 16 * warp_tiles<W>* tile_warps;
inline constexpr int step_rows = 32;  ///< of the other operand at a time

/// The statistics of rows that a warp's block has a part of, those below `count`; others get zeros.
template <int M>
struct RowStatistics {
  float lse[M][2], delta[M][2];

  __device__ RowStatistics(const float* log_sum_exp, const float* deltas, std::int64_t row, std::int64_t count) {
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const std::int64_t i = row + 16 * m + 8 * h + threadIdx.x % warp_lanes / 4;
        lse[m][h] = i < count ? log_sum_exp[i] * log2_e : 0.0F;
        delta[m][h] = i < count ? deltas[i] : 0.0F;
      }
  }
};

template <int W, class T>
__global__ void __launch_bounds__(tile_threads, 2) differentiate_queries(AttentionBackward<T> a, bool packs) {
  constexpr int M = warp_tiles<W>, N = step_rows, Q = rows_of<W>;
  const Attention& o = a.o;
  const std::int64_t head = blockIdx.y, sequence = blockIdx.z, first = (gridDim.x - 1 - std::int64_t{blockIdx.x}) * Q;
  const Qkv<const T> in = head_of(o, a.in, sequence, head);
  const Source<T> keys{in.k, in.kv_stride, o.seq, o.width, packs}, values{in.v, in.kv_stride, o.seq, o.width, packs};
  T *q = dynamic_shared<T>(), *dy = q + Q * row_elements<W>, *pairs = dy + Q * row_elements<W>;
  constexpr int pair = 2 * N * row_elements<W>;  // a tile of keys, then one of values; two of these, in turn
  const auto bring_pair = [&](std::int64_t at) {
    T* to = pairs + at / N % 2 * pair;
    bring<W, N>(keys.from(at), to);
    bring<W, N>(values.from(at), to + pair / 2);
    commit_copies();
  };
  bring<W, Q>(Source<T>{in.q, in.q_stride, o.seq, o.width, packs}.from(first), q);
  bring<W, Q>(Source<T>{a.dy + output_at(o, sequence, head), o.heads * o.width, o.seq, o.width, packs}.from(first), dy);
  const std::int64_t begin = o.first_seen_by(first) / N * N, end = o.causal ? min(o.seq, first + Q) : o.seq;
  bring_pair(begin);

  const int warp_row = threadIdx.x / warp_lanes * 16 * M;
  const ScoreOf<T> score(o, a.bias, head);
  const std::int64_t statistic = statistic_at(o, sequence, head);
  const RowStatistics<M> of(a.log_sum_exp + statistic, a.delta + statistic, first + warp_row, o.seq);
  Block<M, W> dq;
  dq.clear();
  for (std::int64_t at = begin; at < end; at += N) {
    wait_for_copies<0>();
    __syncthreads();  // this pair is there, and the one before it done with
    if (at + N < end) bring_pair(at + N);
    const T *k = pairs + at / N % 2 * pair, *v = k + pair / 2;
    Block<M, N> p, ds;
    multiply_rows<W>(p, q, warp_row, k);
    multiply_rows<W>(ds, dy, warp_row, v);
    make_scores<true>(p, score, o, static_cast<int>(at - first) - warp_row, o.seq - at);
    p.each([&](float& x, Place place) { x = exp2f(x - of.lse[place.m][place.half]); });
    ds.each_with(p, [&](float& x, float p_ij, Place place) { x = p_ij * (x - of.delta[place.m][place.half]); });
    add_product<W>(dq, ds, k);
  }
  const Qkv<T> to = head_of(o, a.grads, sequence, head);
  write(dq, first + warp_row, o.seq, o.width, to.q, to.q_stride, ScoreOf<T>::width_scale(o));
}

/// A tile of queries and one of dy, and their rows' statistics; two of these lie in shared memory, in turn.
template <int W, class T>
struct QueryTile {
  T q[step_rows * row_elements<W>], dy[step_rows * row_elements<W>];
  float lse[step_rows], delta[step_rows];
};

template <int W, class T>
__device__ void bring_queries(const AttentionBackward<T>& a, std::int64_t sequence, std::int64_t head, std::int64_t at,
                              bool packs, QueryTile<W, T>& tile) {
  const Attention& o = a.o;
  const Qkv<const T> in = head_of(o, a.in, sequence, head);
  const T* dy = a.dy + output_at(o, sequence, head);
  bring<W, step_rows>(Source<T>{in.q, in.q_stride, o.seq, o.width, packs}.from(at), tile.q);
  bring<W, step_rows>(Source<T>{dy, o.heads * o.width, o.seq, o.width, packs}.from(at), tile.dy);
  commit_copies();
  if (threadIdx.x >= step_rows) return;
  const std::int64_t i = at + threadIdx.x, statistic = statistic_at(o, sequence, head) + i;
  tile.lse[threadIdx.x] = i < o.seq ? a.log_sum_exp[statistic] * log2_e : INFINITY;  // then all probabilities are 0
  tile.delta[threadIdx.x] = i < o.seq ? a.delta[statistic] : 0.0F;
}

template <int W, class T>
__global__ void __launch_bounds__(tile_threads, 2) differentiate_keys(AttentionBackward<T> a, bool packs) {
  constexpr int M = warp_tiles<W>, N = step_rows, K = rows_of<W>;
  const Attention& o = a.o;
  const std::int64_t sequence = blockIdx.z, first = std::int64_t{blockIdx.x} * K, first_head = blockIdx.y * o.group();
  const std::int64_t first_query = o.causal ? first / N * N : 0, end_query = o.last_to_see(first + K - 1),
                     steps_a_head = (end_query - first_query + N - 1) / N, steps = steps_a_head * o.group();
  const Qkv<const T> in = head_of(o, a.in, sequence, first_head);
  T *k = dynamic_shared<T>(), *v = k + K * row_elements<W>;
  auto* tiles = reinterpret_cast<QueryTile<W, T>*>(v + K * row_elements<W>);
  const auto bring_step = [&](std::int64_t step) {
    bring_queries<W>(a, sequence, first_head + step / steps_a_head, first_query + step % steps_a_head * N, packs,
                     tiles[step % 2]);
  };
  bring<W, K>(Source<T>{in.k, in.kv_stride, o.seq, o.width, packs}.from(first), k);
  bring<W, K>(Source<T>{in.v, in.kv_stride, o.seq, o.width, packs}.from(first), v);
  bring_step(0);

  const int warp_row = threadIdx.x / warp_lanes * 16 * M;
  Block<M, W> dk, dv;
  dk.clear();
  dv.clear();
  for (std::int64_t step = 0; step < steps; ++step) {
    wait_for_copies<0>();
    __syncthreads();  // this step's tile is there, and the one before it done with
    if (step + 1 < steps) bring_step(step + 1);
    const QueryTile<W, T>& tile = tiles[step % 2];
    const std::int64_t at = first_query + step % steps_a_head * N;
    const ScoreOf<T> score(o, a.bias, first_head + step / steps_a_head);
    Block<M, N> p, ds;
    multiply_rows<W>(p, k, warp_row, tile.q);
    make_scores<false>(p, score, o, static_cast<int>(first - at) + warp_row, o.seq - first - warp_row);
    p.each([&](float& x, Place place) { x = exp2f(x - tile.lse[place.column()]); });
    add_product<W>(dv, p, tile.dy);
    multiply_rows<W>(ds, v, warp_row, tile.dy);
    ds.each_with(p, [&](float& x, float p_ji, Place place) { x = p_ji * (x - tile.delta[place.column()]); });
    add_product<W>(dk, ds, tile.q);
  }
  const Qkv<T> to = head_of(o, a.grads, sequence, first_head);
  write(dk, first + warp_row, o.seq, o.width, to.k, to.kv_stride, ScoreOf<T>::width_scale(o));
  write(dv, first + warp_row, o.seq, o.width, to.v, to.kv_stride, 1.0F);
}

template <class T>
bool differentiate(const Queue& queue, const AttentionBackward<T>& a) {
  const Attention& o = a.o;
  return by_width(o.width, [&]<int W>(std::integral_constant<int, W>) {
    constexpr int rows = rows_of<W>;
    const bool packs = in_packs(o, a.in, a.dy);
    const auto grid = [&](std::int64_t heads) {
      return dim3(static_cast<unsigned>(blocks_for(o.seq, rows)), static_cast<unsigned>(heads),
                  static_cast<unsigned>(o.batch));
    };
    launch(differentiate_queries<W, T>, grid(o.heads), tile_threads, tile_bytes<W, T>(2 * rows + 4 * step_rows),
           queue.stream, a, packs);
    launch(differentiate_keys<W, T>, grid(o.keys()), tile_threads,
           tile_bytes<W, T>(2 * rows) + 2 * sizeof(QueryTile<W, T>), queue.stream, a, packs);
  });
}

}  // namespace

bool differentiate_in_tiles(const Queue&, const AttentionBackward<float>&) { return false; }
bool differentiate_in_tiles(const Queue& queue, const AttentionBackward<__nv_bfloat16>& a) {
  return differentiate(queue, a);
}
bool differentiate_in_tiles(const Queue& queue, const AttentionBackward<__half>& a) { return differentiate(queue, a); }

}  // namespace foreshard::kernels::cuda
