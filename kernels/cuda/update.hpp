#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/queue.hpp"
#include "kernels/cuda/verdict.hpp"

/// Optimizer steps over shards. A `Move` is what an optimizer does to one element, with its constants in f32; it is
/// made `of` an Update, on either side. Bound by memory: 10 to 12 bytes an element for gradient and parameter, 6 to 8
/// where parameters are bf16, and 8 for each state. Compiled without fused multiply-add, as the cpu kernels are, so
/// that both round alike.
namespace foreshard::kernels::cuda {

inline constexpr int update_threads = 256, parts_at_once = 64;
inline constexpr std::int64_t most_update_blocks = 1056;

/// The gradient that an update works with: scaled, then cut to ±limit.
struct UpdateGradient {
  float scale, limit;

  __host__ __device__ static UpdateGradient of(const Update& o) {
    return {static_cast<float>(o.grad_scale), static_cast<float>(o.clip_value)};
  }
  __device__ float operator()(float grad) const {
    const float g = grad * scale, low = g < -limit ? -limit : g;
    return low > limit ? limit : low;
  }
};

/// A shard's gradient, parameters and optimizer state; absent states are null.
template <class Grad, class Parameter>
struct Shard {
  static constexpr int n = pack_of<Parameter>;  ///< elements that a thread updates at once

  const Grad* grad;
  Parameter* parameter;
  float *first, *second;

  bool packed() const { return aligned(grad, parameter, first, second); }
};

/// Numbers that a bf16 can hold, of n neighbours of which the first is element i of the update. One call of Philox for
/// all where they are its halves in order, which they are not where parameters begin at odd places.
template <int n>
__device__ inline void round_stochastically(const Rounding& rounding, std::uint64_t i, Pack<float, n>& p) {
  const std::uint64_t e = rounding.first + i;
  if (n == Rounding::halves && e % Rounding::halves == 0) {
    const auto words = philox(rounding.key, rounding.stream, e / Rounding::halves);
    for (int k = 0; k < n; ++k) p.v[k] = rounded_stochastically(p.v[k], words[k / 2] >> (k % 2 * 16));
  } else {
    for (int k = 0; k < n; ++k) p.v[k] = rounded_stochastically(p.v[k], rounding.random(i + k));
  }
}

template <class T, int n>
__device__ inline Pack<float, n> widened(const Pack<T, n>& pack) {
  Pack<float, n> wide;
  for (int k = 0; k < n; ++k) wide.v[k] = widened(pack.v[k]);
  return wide;
}

/// What is stored of parameters.
template <class T, int n>
__device__ inline Pack<T, n> stored(const Rounding& rounding, std::int64_t i, Pack<float, n> p) {
  if constexpr (sizeof(T) < sizeof(float))
    if (rounding.stochastic) round_stochastically(rounding, static_cast<std::uint64_t>(i), p);
  Pack<T, n> narrow;
  for (int k = 0; k < n; ++k) narrow.v[k] = narrowed<T>(p.v[k]);
  return narrow;
}

template <int n, class Move, class Grad, class Parameter>
__device__ inline void move_elements(const Move& move, const Rounding& rounding, const Shard<Grad, Parameter>& s,
                                     std::int64_t i) {
  const Pack<Grad, n> g = load<n>(s.grad + i);
  Pack<float, n> p = widened(load<n>(s.parameter + i)), first{}, second{};
  if constexpr (Move::states > 0) first = load<n>(s.first + i);
  if constexpr (Move::states > 1) second = load<n>(s.second + i);
  for (int k = 0; k < n; ++k) move(widened(g.v[k]), p.v[k], first.v[k], second.v[k]);
  store(s.parameter + i, stored<Parameter>(rounding, i, p));
  if constexpr (Move::states > 0) store(s.first + i, first);
  if constexpr (Move::states > 1) store(s.second + i, second);
}

/// Elements [begin, end) of the n from `i` on.
template <bool packs, class Move, class Grad, class Parameter>
__device__ inline void move_group(const Move& move, const Rounding& rounding, const Shard<Grad, Parameter>& s,
                                  std::int64_t i, std::int64_t begin, std::int64_t end) {
  constexpr int n = Shard<Grad, Parameter>::n;
  if (packs && i >= begin && i + n <= end) return move_elements<n>(move, rounding, s, i);
  for (std::int64_t k = i > begin ? i : begin; k < end && k < i + n; ++k) move_elements<1>(move, rounding, s, k);
}

template <bool packs, class Move, class Grad, class Parameter>
__global__ void update_elements(std::int64_t count, Move move, Rounding rounding, Shard<Grad, Parameter> s) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * update_threads + threadIdx.x) * Shard<Grad, Parameter>::n;
  move_group<packs>(move, rounding, s, i, 0, count);
}

/// What one parameter's update is in this step.
__device__ inline Update update_of(const Step& step, const Rule& rule, double grad_scale) {
  Update o;
  o.step = rule.update;
  o.learning_rate = step.learning_rate * rule.learning_rate_scale;
  o.beta1 = step.beta1;
  o.beta2 = step.beta2;
  o.epsilon = step.epsilon;
  o.weight_decay = rule.weight_decay;
  o.grad_scale = grad_scale;
  o.clip_value = step.clip_value > 0 ? step.clip_value : HUGE_VAL;
  o.momentum = step.momentum;
  o.nesterov = step.nesterov != 0;
  return o;
}

/// Of a shard of which this part is updated.
__device__ inline Rounding rounding_of(const Step& step, const Part& part) {
  Rounding rounding;
  rounding.stochastic = step.stochastic_rounding != 0;
  rounding.key = step.rounding_key;
  rounding.stream = static_cast<std::uint64_t>(part.rule);
  rounding.first = static_cast<std::uint64_t>(part.first - part.at);
  return rounding;
}

/// Every block finds the verdict and, many parts at a time, their constants; then all blocks share each part's
/// elements.
template <bool packs, class Move, class Grad, class Parameter>
__global__ void update_parts(const Step* step, const Rule* rules, const Part* parts, std::int64_t part_count,
                             StepWords sums, Shard<Grad, Parameter> s) {
  constexpr int n = Shard<Grad, Parameter>::n;
  __shared__ Verdict verdict;
  __shared__ Move moves[parts_at_once];
  if (threadIdx.x == 0) verdict = verdict_of(*step, sums);
  __syncthreads();
  if (!verdict.finite) return;
  for (std::int64_t first = 0; first < part_count; first += parts_at_once) {
    const std::int64_t now = min(std::int64_t{parts_at_once}, part_count - first);
    __syncthreads();
    if (threadIdx.x < now)
      moves[threadIdx.x] = Move::of(update_of(*step, rules[parts[first + threadIdx.x].rule], verdict.gradient_scale));
    __syncthreads();
    for (std::int64_t p = 0; p < now; ++p) {
      const Part part = parts[first + p];
      const Rounding rounding = rounding_of(*step, part);
      const std::int64_t begin = part.at / n * n, end = part.at + part.count;
      const std::int64_t block = (blockIdx.x + first + p) % gridDim.x;  // so that small parts are not all one block's
      for (std::int64_t i = begin + (block * update_threads + threadIdx.x) * n; i < end;
           i += std::int64_t{gridDim.x} * update_threads * n)
        move_group<packs>(moves[p], rounding, s, i, part.at, end);
    }
  }
}

struct PartList {
  const Step* step;
  const Rule* rules;
  const Part* parts;
  std::int64_t part_count, count;
  StepWords sums;
};

template <class Move, class Grad, class Parameter>
void update_all(const Queue& queue, const Update& o, const Shard<Grad, Parameter>& s) {
  if (o.count == 0) return;
  launch(s.packed() ? update_elements<true, Move, Grad, Parameter> : update_elements<false, Move, Grad, Parameter>,
         static_cast<unsigned>(blocks_for(o.count, update_threads * s.n)), update_threads, 0, queue.stream, o.count,
         Move::of(o), o.rounding, s);
}

template <class Move, class Grad, class Parameter>
void update_all(const Queue& queue, const PartList& o, const Shard<Grad, Parameter>& s) {
  if (o.part_count == 0) return;
  const std::int64_t blocks =
      std::clamp<std::int64_t>(blocks_for(o.count, update_threads * s.n), 1, most_update_blocks);
  launch(s.packed() ? update_parts<true, Move, Grad, Parameter> : update_parts<false, Move, Grad, Parameter>,
         static_cast<unsigned>(blocks), update_threads, 0, queue.stream, o.step, o.rules, o.parts, o.part_count, o.sums,
         s);
}

/// Updates as the Update or the list of parts says.
template <class Move, class Work>
void update_with(const Queue& queue, const Work& work, const Const& grad, const Mut& parameter, const Mut& first,
                 const Mut& second) {
  by_number(grad.dtype, [&]<class Grad>(Grad) {
    by_type<float, BFloat16>(parameter.dtype, [&]<class T>(T) {
      update_all<Move>(queue, work,
                       Shard<Device<Grad>, Device<T>>{elements<Grad>(grad), elements<T>(parameter),
                                                      elements<float>(first), elements<float>(second)});
    });
  });
}

/// One of these for each optimizer, in its file.
void adam(const Queue&, const Update&, const Const& grad, const Mut& parameter, const Mut& first, const Mut& second);
void adam(const Queue&, const PartList&, const Const& grad, const Mut& parameter, const Mut& first, const Mut& second);
void adamw(const Queue&, const Update&, const Const& grad, const Mut& parameter, const Mut& first, const Mut& second);
void adamw(const Queue&, const PartList&, const Const& grad, const Mut& parameter, const Mut& first, const Mut& second);
void sgd(const Queue&, const Update&, const Const& grad, const Mut& parameter);
void sgd(const Queue&, const PartList&, const Const& grad, const Mut& parameter);
void momentum(const Queue&, const Update&, const Const& grad, const Mut& parameter, const Mut& velocity);
void momentum(const Queue&, const PartList&, const Const& grad, const Mut& parameter, const Mut& velocity);
void lion(const Queue&, const Update&, const Const& grad, const Mut& parameter, const Mut& moment);
void lion(const Queue&, const PartList&, const Const& grad, const Mut& parameter, const Mut& moment);

}  // namespace foreshard::kernels::cuda
