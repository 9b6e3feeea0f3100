// Re-attention in f32, thread by thread: a block a query forward, a block sixteen queries for dq and the parameters, a
// block a key for dk and dv, which makes all weights once more. What all heads have for a query and a key is one
// thread's: a column of matrices [heads, seq] in shared memory. Bound by arithmetic in f32 and by the first-level
// cache.
#include <cmath>

#include "kernels/cuda/column_sums.hpp"
#include "kernels/cuda/dynamic_shared.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/warp.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int threads = 128, warps = threads / warp_lanes;
constexpr std::int64_t queries_of_block = 16;

template <class T>
struct Operands {
  Reattention o;
  const T *q, *k, *v, *mixing, *gain, *bias;
};
template <class T>
struct Forward {
  Operands<T> in;
  T* y;
  float* log_sum_exp;
};
template <class T>
struct Backward {
  Operands<T> in;
  const T* dy;
  const float* log_sum_exp;
  float* delta;  ///< [batch, heads, seq]: Σ over keys of p·dp
  float* parts;  ///< of each block of queries: d mixing, d gain, d bias
  T *dq, *dk, *dv;
};

constexpr std::int64_t parameters_of(const Reattention& o) { return (o.heads + 2) * o.heads; }
constexpr std::int64_t weights_of(const Reattention& o) { return o.heads * o.seq; }
constexpr std::int64_t row_of(const Reattention& o) { return o.heads * o.width; }

__device__ int lane_id() { return threadIdx.x % warp_lanes; }
__device__ int warp_id() { return threadIdx.x / warp_lanes; }
__device__ float scale_of(const Reattention& o) { return 1 / sqrtf(static_cast<float>(o.width)); }

/// The parameters as floats in shared memory.
struct Mixing {
  const float *mixing, *gain, *bias;
};

template <class T>
__device__ void gather(std::int64_t count, const T* from, float* to) {
  for (std::int64_t i = threadIdx.x; i < count; i += threads) to[i] = widened(from[i]);
}

template <class T>
__device__ Mixing gather_mixing(const Operands<T>& in, float* to) {
  const std::int64_t heads = in.o.heads;
  float *gain = to + heads * heads, *bias = gain + heads;
  gather(heads * heads, in.mixing, to);
  gather(heads, in.gain, gain);
  gather(heads, in.bias, bias);
  return {to, gain, bias};
}

/// to[h, n] = f(row_h · rows[n]_h, h, n) with all rows of a sequence.
template <class T, class F>
__device__ void multiply(const Reattention& o, const float* row, const T* rows, float* to, F f) {
  for (std::int64_t at = threadIdx.x; at < weights_of(o); at += threads) {
    const std::int64_t h = at / o.seq, n = at % o.seq;
    const float* a = row + h * o.width;
    const T* b = rows + (n * o.heads + h) * o.width;
    float sum = 0;
    for (std::int64_t d = 0; d < o.width; ++d) sum += a[d] * widened(b[d]);
    to[at] = f(sum, h, n);
  }
}

/// to[h, d] = Σ_n weights[h, n]·rows[n]_h,d, unless it is absent.
template <class T>
__device__ void weigh(const Reattention& o, const float* weights, const T* rows, T* to) {
  if (!to) return;
  for (std::int64_t at = threadIdx.x; at < row_of(o); at += threads) {
    const float* of_head = weights + at / o.width * o.seq;
    float sum = 0;
    for (std::int64_t n = 0; n < o.seq; ++n) sum += of_head[n] * widened(rows[n * row_of(o) + at]);
    to[at] = narrowed<T>(sum);
  }
}

/// In every lane of a warp, Σ_n a[n]·b[n].
__device__ float warp_dot(std::int64_t count, const float* a, const float* b) {
  float sum = 0;
  for (std::int64_t n = lane_id(); n < count; n += warp_lanes) sum += a[n] * b[n];
  return warp_sum(sum);
}

/// x = the column of p, mixed and normalised over heads; returns 1/σ.
__device__ float normalize(const Reattention& o, const Mixing& by, const float* p, float* x) {
  const float part = 1 / static_cast<float>(o.heads);
  float mean = 0, variance = 0;
  for (std::int64_t g = 0; g < o.heads; ++g) {
    float mixed = 0;
    for (std::int64_t h = 0; h < o.heads; ++h) mixed += p[h * o.seq] * by.mixing[h * o.heads + g];
    x[g * o.seq] = mixed;
    mean += mixed * part;
  }
  for (std::int64_t g = 0; g < o.heads; ++g) {
    const float off = x[g * o.seq] - mean;
    variance += off * off * part;
  }
  const float rstd = 1 / sqrtf(variance + o.epsilon);
  for (std::int64_t g = 0; g < o.heads; ++g) x[g * o.seq] = (x[g * o.seq] - mean) * rstd;
  return rstd;
}

/// x = x·gain + bias of the column.
__device__ void finish(const Reattention& o, const Mixing& by, float* x) {
  for (std::int64_t g = 0; g < o.heads; ++g) x[g * o.seq] = x[g * o.seq] * by.gain[g] + by.bias[g];
}

/// d: gradients of weights → of what was normalised, in the column.
__device__ void through_norm(const Reattention& o, const Mixing& by, const float* x, float rstd, float* d) {
  const float part = 1 / static_cast<float>(o.heads);
  float mean_g = 0, mean_gx = 0;
  for (std::int64_t g = 0; g < o.heads; ++g) {
    mean_g += d[g * o.seq] * by.gain[g] * part;
    mean_gx += d[g * o.seq] * by.gain[g] * x[g * o.seq] * part;
  }
  for (std::int64_t g = 0; g < o.heads; ++g)
    d[g * o.seq] = rstd * (d[g * o.seq] * by.gain[g] - mean_g - x[g * o.seq] * mean_gx);
}

/// Of the column, the gradient of head h's probability.
__device__ float through_mixing(const Reattention& o, const Mixing& by, const float* d, std::int64_t h) {
  float sum = 0;
  for (std::int64_t g = 0; g < o.heads; ++g) sum += by.mixing[h * o.heads + g] * d[g * o.seq];
  return sum;
}

/// A warp: scores of a head → probabilities; returns log Σ exp.
__device__ float find_probabilities(std::int64_t count, float* scores) {
  float highest = -INFINITY, total = 0;
  for (std::int64_t n = lane_id(); n < count; n += warp_lanes) highest = fmaxf(highest, scores[n]);
  highest = over_warp(highest, Larger{});
  for (std::int64_t n = lane_id(); n < count; n += warp_lanes) total += expf(scores[n] - highest);
  const float log_sum = highest + logf(warp_sum(total));
  for (std::int64_t n = lane_id(); n < count; n += warp_lanes) scores[n] = expf(scores[n] - log_sum);
  return log_sum;
}

template <class T>
__global__ void attend(Forward<T> a) {
  const Reattention& o = a.in.o;
  const std::int64_t i = blockIdx.x, sequence = blockIdx.y, first = sequence * o.seq * row_of(o),
                     row = first + i * row_of(o);
  float *p = dynamic_shared<float>(), *n = p + weights_of(o), *q = n + weights_of(o);
  const Mixing by = gather_mixing(a.in, q + row_of(o));
  gather(row_of(o), a.in.q + row, q);
  __syncthreads();
  const float scale = scale_of(o);
  multiply(o, q, a.in.k + first, p, [scale](float dot, std::int64_t, std::int64_t) { return dot * scale; });
  __syncthreads();
  for (std::int64_t h = warp_id(); h < o.heads; h += warps) {
    const float log_sum = find_probabilities(o.seq, p + h * o.seq);
    if (lane_id() == 0) a.log_sum_exp[(sequence * o.heads + h) * o.seq + i] = log_sum;
  }
  __syncthreads();
  for (std::int64_t j = threadIdx.x; j < o.seq; j += threads) {
    normalize(o, by, p + j, n + j);
    finish(o, by, n + j);
  }
  __syncthreads();
  weigh(o, n, a.in.v + first, a.y + row);
}

/// What a query gives to dq, and to the sums of the parameters' gradients; p, x and d are [heads, seq], rstd [seq].
template <class T>
__device__ void differentiate_query(const Backward<T>& a, const Mixing& by, std::int64_t sequence, std::int64_t i,
                                    float* sums, float* p, float* x, float* d, float* rstd, float* q) {
  const Reattention& o = a.in.o;
  const std::int64_t first = sequence * o.seq * row_of(o), row = first + i * row_of(o),
                     statistic = sequence * weights_of(o) + i;
  const float scale = scale_of(o);
  float *dy = q + row_of(o), *of_gain = sums + o.heads * o.heads, *of_bias = of_gain + o.heads;
  gather(row_of(o), a.in.q + row, q);
  gather(row_of(o), a.dy + row, dy);
  __syncthreads();
  multiply(o, q, a.in.k + first, p, [&](float dot, std::int64_t h, std::int64_t) {
    return expf(dot * scale - a.log_sum_exp[statistic + h * o.seq]);
  });
  multiply(o, dy, a.in.v + first, d, [](float dot, std::int64_t, std::int64_t) { return dot; });
  __syncthreads();
  for (std::int64_t j = threadIdx.x; j < o.seq; j += threads) rstd[j] = normalize(o, by, p + j, x + j);
  __syncthreads();
  for (std::int64_t g = warp_id(); g < o.heads; g += warps) {
    float bias = 0;
    for (std::int64_t j = lane_id(); j < o.seq; j += warp_lanes) bias += d[g * o.seq + j];
    bias = warp_sum(bias);
    const float gain = warp_dot(o.seq, d + g * o.seq, x + g * o.seq);
    if (lane_id() == 0) of_gain[g] += gain, of_bias[g] += bias;
  }
  __syncthreads();
  for (std::int64_t j = threadIdx.x; j < o.seq; j += threads) {
    through_norm(o, by, x + j, rstd[j], d + j);
    for (std::int64_t h = 0; h < o.heads; ++h) x[h * o.seq + j] = through_mixing(o, by, d + j, h);
  }
  __syncthreads();
  for (std::int64_t pair = warp_id(); pair < o.heads * o.heads; pair += warps) {
    const float mixed = warp_dot(o.seq, p + pair / o.heads * o.seq, d + pair % o.heads * o.seq);
    if (lane_id() == 0) sums[pair] += mixed;
  }
  for (std::int64_t h = warp_id(); h < o.heads; h += warps) {
    const float delta = warp_dot(o.seq, p + h * o.seq, x + h * o.seq);
    if (lane_id() == 0) a.delta[statistic + h * o.seq] = delta;
    for (std::int64_t at = h * o.seq + lane_id(); at < (h + 1) * o.seq; at += warp_lanes)
      x[at] = p[at] * (x[at] - delta) * scale;
  }
  __syncthreads();
  weigh(o, x, a.in.k + first, a.dq ? a.dq + row : nullptr);
}

template <class T>
__global__ void differentiate_queries(Backward<T> a) {
  const Reattention& o = a.in.o;
  const std::int64_t begin = blockIdx.x * queries_of_block, end = min(o.seq, begin + queries_of_block);
  float *p = dynamic_shared<float>(), *x = p + weights_of(o), *d = x + weights_of(o), *rstd = d + weights_of(o),
        *q = rstd + o.seq, *sums = q + 2 * row_of(o);
  const Mixing by = gather_mixing(a.in, sums + parameters_of(o));
  for (std::int64_t n = threadIdx.x; n < parameters_of(o); n += threads) sums[n] = 0;
  for (std::int64_t i = begin; i < end; ++i) {
    __syncthreads();
    differentiate_query(a, by, blockIdx.y, i, sums, p, x, d, rstd, q);
  }
  float* to = a.parts + (std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x) * parameters_of(o);
  for (std::int64_t n = threadIdx.x; n < parameters_of(o); n += threads) to[n] = sums[n];
}

template <class T>
__global__ void differentiate_key(Backward<T> a) {
  const Reattention& o = a.in.o;
  const std::int64_t sequence = blockIdx.y, first = sequence * o.seq * row_of(o), row = first + blockIdx.x * row_of(o);
  float *p = dynamic_shared<float>(), *x = p + weights_of(o), *d = x + weights_of(o), *k = d + weights_of(o),
        *v = k + row_of(o);
  const Mixing by = gather_mixing(a.in, v + row_of(o));
  gather(row_of(o), a.in.k + row, k);
  gather(row_of(o), a.in.v + row, v);
  __syncthreads();
  const float scale = scale_of(o);
  const float *log_sum_exp = a.log_sum_exp + sequence * weights_of(o), *delta = a.delta + sequence * weights_of(o);
  multiply(o, k, a.in.q + first, p,
           [&](float dot, std::int64_t h, std::int64_t i) { return expf(dot * scale - log_sum_exp[h * o.seq + i]); });
  multiply(o, v, a.dy + first, d, [](float dot, std::int64_t, std::int64_t) { return dot; });
  __syncthreads();
  for (std::int64_t i = threadIdx.x; i < o.seq; i += threads) {
    const float rstd = normalize(o, by, p + i, x + i);
    through_norm(o, by, x + i, rstd, d + i);
    finish(o, by, x + i);
    for (std::int64_t at = i, h = 0; h < o.heads; ++h, at += o.seq)
      p[at] = p[at] * (through_mixing(o, by, d + i, h) - delta[at]) * scale;
  }
  __syncthreads();
  weigh(o, p, a.in.q + first, a.dk ? a.dk + row : nullptr);
  weigh(o, x, a.dy + first, a.dv ? a.dv + row : nullptr);
}

dim3 grid_of(const Reattention& o, std::int64_t blocks) {
  return dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(o.batch));
}
template <class T>
void run(const Queue& queue, const Backward<T>& a, std::int64_t blocks) {
  const Reattention& o = a.in.o;
  const auto shared_bytes = static_cast<std::size_t>(o.shared_bytes());
  launch(differentiate_queries<T>, grid_of(o, blocks), threads, shared_bytes, queue.stream, a);
  if (a.dk || a.dv) launch(differentiate_key<T>, grid_of(o, o.seq), threads, shared_bytes, queue.stream, a);
}

}  // namespace

void reattention(const Queue& queue, const Reattention& o, Const q, Const k, Const v, Const mixing, Const gain,
                 Const bias, Mut y, Mut log_sum_exp) {
  if (o.batch * weights_of(o) == 0) return;
  by_number(y.dtype, [&]<class T>(T) {
    const Forward<Device<T>> a{
        {o, elements<T>(q), elements<T>(k), elements<T>(v), elements<T>(mixing), elements<T>(gain), elements<T>(bias)},
        elements<T>(y),
        elements<float>(log_sum_exp)};
    launch(attend<Device<T>>, grid_of(o, o.seq), threads, static_cast<std::size_t>(o.shared_bytes()), queue.stream, a);
  });
}

void reattention_backward(const Queue& queue, const Reattention& o, bool accumulate, Const dy, Const q, Const k,
                          Const v, Const mixing, Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv,
                          Mut dmixing, Mut dgain, Mut dbias) {
  if (o.batch * weights_of(o) == 0) return;
  const std::int64_t blocks = blocks_for(o.seq, queries_of_block), stride = parameters_of(o);
  float* const delta = queue.partial<float>(o.batch * (weights_of(o) + blocks * stride));
  float* const parts = delta + o.batch * weights_of(o);
  by_number(dy.dtype, [&]<class T>(T) {
    run(queue,
        Backward<Device<T>>{{o, elements<T>(q), elements<T>(k), elements<T>(v), elements<T>(mixing), elements<T>(gain),
                             elements<T>(bias)},
                            elements<T>(dy),
                            elements<float>(log_sum_exp),
                            delta,
                            parts,
                            elements<T>(dq),
                            elements<T>(dk),
                            elements<T>(dv)},
        blocks);
    by_result_type<T>(type_of_present(dmixing, dgain, type_of_present(dbias, {}, dy.dtype)), [&]<class Grad>(Grad) {
      const auto total = [&](std::int64_t at, std::int64_t cols, const Mut& to) {
        total_columns(queue, o.batch * blocks, cols, stride, parts + at, accumulate, elements<Grad>(to));
      };
      total(0, o.heads * o.heads, dmixing);
      total(o.heads * o.heads, o.heads, dgain);
      total(o.heads * (o.heads + 1), o.heads, dbias);
    });
  });
}

}  // namespace foreshard::kernels::cuda
