#pragma once
#include <cmath>

#include "kernels/cuda/attention.hpp"
#include "kernels/cuda/dynamic_shared.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/tile.hpp"

namespace foreshard::kernels::cuda {

/// Calls f with the width that heads are padded to, as an integral constant; false if they are wider than 128.
template <class F>
bool by_width(std::int64_t width, F f) {
  const auto call = [&]<int W>(std::integral_constant<int, W> padded) { return width <= W && (f(padded), true); };
  return call(std::integral_constant<int, 32>{}) || call(std::integral_constant<int, 64>{}) ||
         call(std::integral_constant<int, 80>{}) || call(std::integral_constant<int, 96>{}) ||
         call(std::integral_constant<int, 128>{});
}

/// Whether rows may be brought to shared memory 16 bytes at a time.
template <class T>
bool in_packs(const Attention& o, const Qkv<const T>& in, const T* dy) {
  constexpr std::int64_t n = access_bytes / sizeof(T);
  return o.width % n == 0 && in.q_stride % n == 0 && in.kv_stride % n == 0 && aligned(in.q, in.k, in.v, dy);
}

/// Makes a warp's products scores. `offset` is how far the key of its block's first element is behind the query;
/// queries are rows if `across`, keys otherwise; `present` keys of the block's are within the sequence. Keys that their
/// query does not see get −∞; for that a block is looked at again only where it may have such.
template <bool across, class T, int M, int N>
__device__ inline void make_scores(Block<M, N>& products, const ScoreOf<T>& score, const Attention& o, int offset,
                                   std::int64_t present) {
  constexpr float sign = across ? 1.0F : -1.0F;
  const int of_lane = offset + (across ? lane_column() - lane_row() : lane_row() - lane_column());
  const auto first = static_cast<float>(of_lane);
  const auto distance = [=](Place at) { return first + sign * static_cast<float>(at.right - at.down); };
  products.each([&](float& x, Place at) { x = score(x, distance(at)); });
  if (score.bias)
    products.each(
        [&](float& x, Place at) { x += score.bias_at(of_lane + (across ? at.right - at.down : at.down - at.right)); });
  if (o.causal && offset + (across ? N : 16 * M) > 1)
    products.each([&](float& x, Place at) { x = distance(at) <= 0 ? x : -INFINITY; });
  if (o.window > 0 && offset - (across ? 16 * M : N) < -o.window)
    products.each([&](float& x, Place at) { x = distance(at) > static_cast<float>(-o.window) ? x : -INFINITY; });
  if (!o.causal && across && present < N)
    products.each([&](float& x, Place at) { x = at.column() < present ? x : -INFINITY; });
}

template <int W, class T>
constexpr std::size_t tile_bytes(int rows) {
  return static_cast<std::size_t>(rows * row_elements<W>) * sizeof(T);
}

}  // namespace foreshard::kernels::cuda
