#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/queue.hpp"
#include "kernels/cuda/verdict.hpp"

/// Optimizer steps over shards. A `Move` is what an optimizer does to one element, with its constants in f32; it is
/// made `of` an Update, on either side. Bound by memory: 10 to 12 bytes an element for gradient and parameter, and 8
/// for each state. Compiled without fused multiply-add, as the cpu kernels are, so that both round alike.
namespace foreshard::kernels::cuda {

inline constexpr int update_threads = 256, update_n = 4, parts_at_once = 64;
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
template <class Grad>
struct Shard {
  const Grad* grad;
  float *parameter, *first, *second;

  bool packed() const { return aligned(grad, parameter, first, second); }
};

template <int n, class Move, class Grad>
__device__ inline void move_elements(const Move& move, const Shard<Grad>& s, std::int64_t i) {
  const Pack<Grad, n> g = load<n>(s.grad + i);
  Pack<float, n> p = load<n>(s.parameter + i), first{}, second{};
  if constexpr (Move::states > 0) first = load<n>(s.first + i);
  if constexpr (Move::states > 1) second = load<n>(s.second + i);
  for (int k = 0; k < n; ++k) move(widened(g.v[k]), p.v[k], first.v[k], second.v[k]);
  store(s.parameter + i, p);
  if constexpr (Move::states > 0) store(s.first + i, first);
  if constexpr (Move::states > 1) store(s.second + i, second);
}

/// Elements [begin, end) of the update_n from `i` on.
template <bool packs, class Move, class Grad>
__device__ inline void move_group(const Move& move, const Shard<Grad>& s, std::int64_t i, std::int64_t begin,
                                  std::int64_t end) {
  if (packs && i >= begin && i + update_n <= end) return move_elements<update_n>(move, s, i);
  for (std::int64_t k = i > begin ? i : begin; k < end && k < i + update_n; ++k) move_elements<1>(move, s, k);
}

template <bool packs, class Move, class Grad>
__global__ void update_elements(std::int64_t count, Move move, Shard<Grad> s) {
  const std::int64_t i = (std::int64_t{blockIdx.x} * update_threads + threadIdx.x) * update_n;
  move_group<packs>(move, s, i, 0, count);
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

/// Every block finds the verdict and, many parts at a time, their constants; then all blocks share each part's
/// elements.
template <bool packs, class Move, class Grad>
__global__ void update_parts(const Step* step, const Rule* rules, const Part* parts, std::int64_t part_count,
                             StepWords sums, Shard<Grad> s) {
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
      const std::int64_t begin = part.at / update_n * update_n, end = part.at + part.count;
      const std::int64_t block = (blockIdx.x + first + p) % gridDim.x;  // so that small parts are not all one block's
      for (std::int64_t i = begin + (block * update_threads + threadIdx.x) * update_n; i < end;
           i += std::int64_t{gridDim.x} * update_threads * update_n)
        move_group<packs>(moves[p], s, i, part.at, end);
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

template <class Move, class Grad>
void update_all(const Queue& queue, const Update& o, const Shard<Grad>& s) {
  if (o.count == 0) return;
  launch(s.packed() ? update_elements<true, Move, Grad> : update_elements<false, Move, Grad>,
         static_cast<unsigned>(blocks_for(o.count, update_threads * update_n)), update_threads, 0, queue.stream,
         o.count, Move::of(o), s);
}

template <class Move, class Grad>
void update_all(const Queue& queue, const PartList& o, const Shard<Grad>& s) {
  if (o.part_count == 0) return;
  const std::int64_t blocks =
      std::clamp<std::int64_t>(blocks_for(o.count, update_threads * update_n), 1, most_update_blocks);
  launch(s.packed() ? update_parts<true, Move, Grad> : update_parts<false, Move, Grad>, static_cast<unsigned>(blocks),
         update_threads, 0, queue.stream, o.step, o.rules, o.parts, o.part_count, o.sums, s);
}

/// Updates as the Update or the list of parts says.
template <class Move, class Work>
void update_with(const Queue& queue, const Work& work, const Const& grad, const Mut& parameter, const Mut& first,
                 const Mut& second) {
  by_number(grad.dtype, [&]<class Grad>(Grad) {
    update_all<Move>(queue, work,
                     Shard<Device<Grad>>{elements<Grad>(grad), elements<float>(parameter), elements<float>(first),
                                         elements<float>(second)});
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
