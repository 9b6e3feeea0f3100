#pragma once
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

template <int W, class T>
constexpr std::size_t tile_bytes(int rows) {
  return static_cast<std::size_t>(rows * row_elements<W>) * sizeof(T);
}

}  // namespace foreshard::kernels::cuda
