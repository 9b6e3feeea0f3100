// Attention of any type and width: a warp a query forward and for dq, a warp a key for dk and dv, 32 scores at a time.
// Bound by arithmetic in f32 and by the first-level cache; the way of f32 and of heads wider than 128. What tensor
// cores can do is in attention_tiles.cu.
#include "kernels/cuda/attention.hpp"

#include <cmath>

#include "kernels/cuda/dynamic_shared.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/warp.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int warps = 4, threads = warps * warp_lanes;

__device__ int lane_id() { return threadIdx.x % warp_lanes; }

/// This warp's part of the block's dynamic shared memory, of `floats` floats.
__device__ float* warp_shared(std::int64_t floats) {
  return dynamic_shared<float>() + threadIdx.x / warp_lanes * floats;
}

template <class A, class B>
__device__ float dot(const A* a, const B* b, std::int64_t width) {
  float sum = 0;
  for (std::int64_t d = 0; d < width; ++d) sum += widened(a[d]) * widened(b[d]);
  return sum;
}

template <class T>
__device__ void gather(const T* row, std::int64_t width, float* to) {
  for (std::int64_t d = lane_id(); d < width; d += warp_lanes) to[d] = widened(row[d]);
}

/// sums[d] += Σ weights[n]·rows[n·stride + d] of `count` rows; each lane has its own d.
template <class T>
__device__ void add_weighted(const float* weights, std::int64_t count, const T* rows, std::int64_t stride,
                             std::int64_t width, float* sums) {
  for (std::int64_t d = lane_id(); d < width; d += warp_lanes) {
    float sum = 0;
    for (std::int64_t n = 0; n < count; ++n) sum += weights[n] * widened(rows[n * stride + d]);
    sums[d] += sum;
  }
}

template <class T>
__global__ void attend(AttentionForward<T> a) {
  const Attention& o = a.o;
  const std::int64_t i = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_lanes, head = blockIdx.y,
                     sequence = blockIdx.z;
  if (i >= o.seq) return;
  const Qkv<const T> in = head_of(o, a.in, sequence, head);
  float *q = warp_shared(2 * o.width + warp_lanes), *y = q + o.width, *weights = y + o.width;
  gather(in.q + i * in.q_stride, o.width, q);
  for (std::int64_t d = lane_id(); d < o.width; d += warp_lanes) y[d] = 0;
  const ScoreOf<T> score_of(o, a.bias, head);
  float highest = -INFINITY, total = 0;
  const std::int64_t seen = o.seen_by(i);
  for (std::int64_t first = o.first_seen_by(i); first < seen; first += warp_lanes) {
    const std::int64_t j = first + lane_id();
    __syncwarp();
    const float score =
        j < seen ? score_of.of(dot(q, in.k + j * in.kv_stride, o.width), static_cast<int>(j - i)) : -INFINITY;
    const float before = highest;
    highest = fmaxf(highest, over_warp(score, Larger{}));
    const float rescale = exp2f(before - highest), weight = j < seen ? exp2f(score - highest) : 0.0F;
    total = total * rescale + warp_sum(weight);
    weights[lane_id()] = weight;
    for (std::int64_t d = lane_id(); d < o.width; d += warp_lanes) y[d] *= rescale;
    __syncwarp();
    add_weighted(weights, min(std::int64_t{warp_lanes}, seen - first), in.v + first * in.kv_stride, in.kv_stride,
                 o.width, y);
  }
  T* to = a.y + output_at(o, sequence, head) + i * o.heads * o.width;
  for (std::int64_t d = lane_id(); d < o.width; d += warp_lanes) to[d] = narrowed<T>(y[d] / total);
  if (lane_id() == 0) a.log_sum_exp[statistic_at(o, sequence, head) + i] = highest * ln_2 + logf(total);
}

/// delta = dy · y, a warp a row and head.
template <class T>
__global__ void find_delta(AttentionBackward<T> a) {
  const Attention& o = a.o;
  const std::int64_t i = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_lanes, head = blockIdx.y,
                     sequence = blockIdx.z;
  if (i >= o.seq) return;
  const std::int64_t at = output_at(o, sequence, head) + i * o.heads * o.width;
  float sum = 0;
  for (std::int64_t d = lane_id(); d < o.width; d += warp_lanes) sum += widened(a.dy[at + d]) * widened(a.y[at + d]);
  sum = warp_sum(sum);
  if (lane_id() == 0) a.delta[statistic_at(o, sequence, head) + i] = sum;
}

template <class T>
__global__ void differentiate_query(AttentionBackward<T> a) {
  const Attention& o = a.o;
  const std::int64_t i = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_lanes, head = blockIdx.y,
                     sequence = blockIdx.z;
  if (i >= o.seq) return;
  const Qkv<const T> in = head_of(o, a.in, sequence, head);
  float *q = warp_shared(3 * o.width + warp_lanes), *dy = q + o.width, *dq = dy + o.width, *weights = dq + o.width;
  gather(in.q + i * in.q_stride, o.width, q);
  gather(a.dy + output_at(o, sequence, head) + i * o.heads * o.width, o.width, dy);
  for (std::int64_t d = lane_id(); d < o.width; d += warp_lanes) dq[d] = 0;
  const ScoreOf<T> score_of(o, a.bias, head);
  const std::int64_t statistic = statistic_at(o, sequence, head) + i;
  const float lse = a.log_sum_exp[statistic] * log2_e, delta = a.delta[statistic];
  const std::int64_t seen = o.seen_by(i);
  for (std::int64_t first = o.first_seen_by(i); first < seen; first += warp_lanes) {
    const std::int64_t j = first + lane_id();
    __syncwarp();
    float weight = 0;
    if (j < seen) {
      const float p = exp2f(score_of.of(dot(q, in.k + j * in.kv_stride, o.width), static_cast<int>(j - i)) - lse);
      weight = p * (dot(dy, in.v + j * in.kv_stride, o.width) - delta);
    }
    weights[lane_id()] = weight;
    __syncwarp();
    add_weighted(weights, min(std::int64_t{warp_lanes}, seen - first), in.k + first * in.kv_stride, in.kv_stride,
                 o.width, dq);
  }
  T* to = head_of(o, a.grads, sequence, head).q + i * a.grads.q_stride;
  const float scale = ScoreOf<T>::width_scale(o);
  for (std::int64_t d = lane_id(); d < o.width; d += warp_lanes) to[d] = narrowed<T>(dq[d] * scale);
}

/// Adds to a key's dk and dv, in this warp's shared memory, what the queries of one head give.
template <class T>
__device__ void add_queries(const AttentionBackward<T>& a, std::int64_t sequence, std::int64_t head, std::int64_t j,
                            const float* k, const float* v, float* dk, float* dv, float* weights) {
  const Attention& o = a.o;
  const Qkv<const T> in = head_of(o, a.in, sequence, head);
  const std::int64_t statistic = statistic_at(o, sequence, head), stride = o.heads * o.width;
  const T* dy = a.dy + output_at(o, sequence, head);
  const ScoreOf<T> score_of(o, a.bias, head);
  float *of_k = weights, *of_v = weights + warp_lanes;
  const std::int64_t end = o.last_to_see(j);
  for (std::int64_t first = o.causal ? j : 0; first < end; first += warp_lanes) {
    const std::int64_t i = first + lane_id();
    __syncwarp();
    of_k[lane_id()] = of_v[lane_id()] = 0;
    if (i < end) {
      const float score = score_of.of(dot(k, in.q + i * in.q_stride, o.width), static_cast<int>(j - i));
      const float p = exp2f(score - a.log_sum_exp[statistic + i] * log2_e);
      of_v[lane_id()] = p;
      of_k[lane_id()] = p * (dot(v, dy + i * stride, o.width) - a.delta[statistic + i]);
    }
    __syncwarp();
    const std::int64_t count = min(std::int64_t{warp_lanes}, end - first);
    add_weighted(of_k, count, in.q + first * in.q_stride, in.q_stride, o.width, dk);
    add_weighted(of_v, count, dy + first * stride, stride, o.width, dv);
  }
}

template <class T>
__global__ void differentiate_key(AttentionBackward<T> a) {
  const Attention& o = a.o;
  const std::int64_t j = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_lanes, sequence = blockIdx.z,
                     first_head = blockIdx.y * o.group();
  if (j >= o.seq) return;
  const Qkv<const T> in = head_of(o, a.in, sequence, first_head);
  float *k = warp_shared(4 * o.width + 2 * warp_lanes), *v = k + o.width, *dk = v + o.width, *dv = dk + o.width;
  gather(in.k + j * in.kv_stride, o.width, k);
  gather(in.v + j * in.kv_stride, o.width, v);
  for (std::int64_t d = lane_id(); d < o.width; d += warp_lanes) dk[d] = dv[d] = 0;
  for (std::int64_t head = first_head; head < first_head + o.group(); ++head)
    add_queries(a, sequence, head, j, k, v, dk, dv, dv + o.width);
  const Qkv<T> to = head_of(o, a.grads, sequence, first_head);
  const float scale = ScoreOf<T>::width_scale(o);
  for (std::int64_t d = lane_id(); d < o.width; d += warp_lanes) {
    to.k[j * to.kv_stride + d] = narrowed<T>(dk[d] * scale);
    to.v[j * to.kv_stride + d] = narrowed<T>(dv[d]);
  }
}

/// What one sequence adds to a head's bias at a distance: each lane takes every 32nd query.
template <class T>
__device__ float bias_gradient(const AttentionBackward<T>& a, std::int64_t sequence, std::int64_t head,
                               std::int64_t distance) {
  const Attention& o = a.o;
  const Qkv<const T> in = head_of(o, a.in, sequence, head);
  const T* dy = a.dy + output_at(o, sequence, head);
  const std::int64_t statistic = statistic_at(o, sequence, head), stride = o.heads * o.width;
  const ScoreOf<T> score_of(o, a.bias, head);
  float sum = 0;
  for (std::int64_t i = max(std::int64_t{0}, -distance) + lane_id(); i < min(o.seq, o.seq - distance);
       i += warp_lanes) {
    const T *k = in.k + (i + distance) * in.kv_stride, *v = in.v + (i + distance) * in.kv_stride;
    const float score = score_of.of(dot(in.q + i * in.q_stride, k, o.width), static_cast<int>(distance));
    const float p = exp2f(score - a.log_sum_exp[statistic + i] * log2_e);
    sum += p * (dot(dy + i * stride, v, o.width) - a.delta[statistic + i]);
  }
  return sum;
}

/// A warp a distance, over all sequences in order. Makes all scores once more, in f32.
template <class T>
__global__ void differentiate_bias(AttentionBackward<T> a) {
  const Attention& o = a.o;
  const std::int64_t element = std::int64_t{blockIdx.x} * warps + threadIdx.x / warp_lanes, head = blockIdx.y,
                     distance = element + 1 - o.seq;
  if (element >= o.distances()) return;
  float sum = 0;
  if (!o.causal || (distance <= 0 && -distance < o.last_to_see(0)))
    for (std::int64_t sequence = 0; sequence < o.batch; ++sequence) sum += bias_gradient(a, sequence, head, distance);
  sum = warp_sum(sum);
  if (lane_id() == 0) a.dbias[head * o.distances() + element] = narrowed<T>(sum);
}

/// A grid of a warp for each row of `heads` heads, and the shared memory of a block whose warps have `floats` each.
dim3 grid_of(const Attention& o, std::int64_t heads) {
  return {static_cast<unsigned>(blocks_for(o.seq, warps)), static_cast<unsigned>(heads),
          static_cast<unsigned>(o.batch)};
}
std::size_t shared_bytes(std::int64_t floats) { return warps * static_cast<std::size_t>(floats) * sizeof(float); }

template <class T>
void run(const Queue& queue, const AttentionForward<T>& a) {
  if (attend_in_tiles(queue, a)) return;
  launch(attend<T>, grid_of(a.o, a.o.heads), threads, shared_bytes(2 * a.o.width + warp_lanes), queue.stream, a);
}

template <class T>
void run(const Queue& queue, const AttentionBackward<T>& a) {
  const Attention& o = a.o;
  launch(find_delta<T>, grid_of(o, o.heads), threads, 0, queue.stream, a);
  if (a.dbias)
    launch(differentiate_bias<T>,
           dim3(static_cast<unsigned>(blocks_for(o.distances(), warps)), static_cast<unsigned>(o.heads)), threads, 0,
           queue.stream, a);
  if (differentiate_in_tiles(queue, a)) return;
  launch(differentiate_query<T>, grid_of(o, o.heads), threads, shared_bytes(3 * o.width + warp_lanes), queue.stream, a);
  launch(differentiate_key<T>, grid_of(o, o.keys()), threads, shared_bytes(4 * o.width + 2 * warp_lanes), queue.stream,
         a);
}

}  // namespace

void attention(const Queue& queue, const Attention& o, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) {
  if (o.batch * o.seq * o.heads == 0) return;
  by_number(y.dtype, [&]<class T>(T) {
    run(queue, AttentionForward<Device<T>>{o, device_qkv<T>(o, q, k, v), elements<T>(bias), elements<T>(y),
                                           elements<float>(log_sum_exp)});
  });
}

void attention_backward(const Queue& queue, const Attention& o, Const dy, Const q, Const k, Const v, Const bias,
                        Const y, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias) {
  if (o.batch * o.seq * o.heads == 0) return;
  auto* delta = queue.partial<float>(o.batch * o.heads * o.seq);
  by_number(dq.dtype, [&]<class T>(T) {
    run(queue, AttentionBackward<Device<T>>{o, device_qkv<T>(o, q, k, v), elements<T>(bias), elements<T>(dy),
                                            elements<T>(y), elements<float>(log_sum_exp), delta,
                                            device_qkv<T>(o, dq, dk, dv), elements<T>(dbias)});
  });
}

}  // namespace foreshard::kernels::cuda
