#pragma once
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/queue.hpp"
#include "kernels/qkv.hpp"

namespace foreshard::kernels::cuda {

/// What attention reads and writes, in device code.
template <class T>
struct AttentionForward {
  Attention o;
  Qkv<const T> in;
  const T* bias;  ///< [heads, distances], or null
  T* y;
  float* log_sum_exp;
};
template <class T>
struct AttentionBackward {
  Attention o;
  Qkv<const T> in;
  const T *bias, *dy, *y;
  const float* log_sum_exp;
  float* delta;  ///< [batch, heads, seq]: dy · y by row and head
  Qkv<T> grads;
  T* dbias;
};

/// Operands as device code sees them.
template <class T, class Operand>
auto device_qkv(const Attention& o, const Operand& q, const Operand& k, const Operand& v) {
  const auto all = qkv_of<T>(o, q, k, v);
  using Element =
      std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(all.q)>>, const Device<T>, Device<T>>;
  const auto cast = [](auto* x) { return reinterpret_cast<Element*>(x); };
  return Qkv<Element>{cast(all.q), cast(all.k), cast(all.v), all.q_stride, all.kv_stride};
}

/// Where a head's row i begins in y and dy, which have rows of heads·width, and in log_sum_exp and delta.
__device__ inline std::int64_t output_at(const Attention& o, std::int64_t sequence, std::int64_t head) {
  return (sequence * o.seq * o.heads + head) * o.width;
}
__device__ inline std::int64_t statistic_at(const Attention& o, std::int64_t sequence, std::int64_t head) {
  return (sequence * o.heads + head) * o.seq;
}

inline constexpr float log2_e = 1.44269504088896341F, ln_2 = 0.693147180559945309F;

/// Scores times log₂ e, so that their exponentials are powers of two: scale·(q · k) + slope·(j − i), or with the head's
/// bias at distance j − i.
template <class T>
struct ScoreOf {
  float scale, slope;
  const T* bias;  ///< at distance 0; null if there is none
  int farthest;

  __device__ ScoreOf(const Attention& o, const T* biases, std::int64_t head)
      : scale(log2_e * width_scale(o)),
        slope(o.alibi == 0 ? 0.0F : log2_e * static_cast<float>(exp2(o.slope_exponent(head)))),
        bias(biases ? biases + head * o.distances() + o.seq - 1 : nullptr),
        farthest(static_cast<int>(o.seq) - 1) {}
  /// `distance` is j − i.
  __device__ float operator()(float product, float distance) const { return scale * product + slope * distance; }
  /// The bias at a distance, at one that there is where the distance belongs to rows that there are not.
  __device__ float bias_at(int distance) const {
    return log2_e * widened(bias[min(max(distance, -farthest), farthest)]);
  }
  __device__ float of(float product, int distance) const {
    return (*this)(product, static_cast<float>(distance)) + (bias ? bias_at(distance) : 0.0F);
  }
  static __device__ float width_scale(const Attention& o) {
    return o.scaled ? 1 / sqrtf(static_cast<float>(o.width)) : 1.0F;
  }
};

/// On tensor cores: false if these operands have no such kernel.
bool attend_in_tiles(const Queue&, const AttentionForward<float>&);
bool attend_in_tiles(const Queue&, const AttentionForward<__nv_bfloat16>&);
bool attend_in_tiles(const Queue&, const AttentionForward<__half>&);
bool differentiate_in_tiles(const Queue&, const AttentionBackward<float>&);
bool differentiate_in_tiles(const Queue&, const AttentionBackward<__nv_bfloat16>&);
bool differentiate_in_tiles(const Queue&, const AttentionBackward<__half>&);

}  // namespace foreshard::kernels::cuda
