#pragma once
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/queue.hpp"

/// Kernels that make element i of the result of elements i of the operands.
namespace foreshard::kernels::cuda {

inline constexpr int map_threads = 256;

template <int n, class F, class To, class... From>
__global__ void map_elements(std::int64_t count, F f, To* to, const From*... from) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * map_threads + threadIdx.x) * n;
  if (at + n <= count) {
    Pack<To, n> result;
    [&](const auto&... pack) {
      for (int k = 0; k < n; ++k) result.v[k] = narrowed<To>(f(widened(pack.v[k])...));
    }(load<n>(from + at)...);
    store(to + at, result);
  } else {
    for (std::int64_t i = at; i < count; ++i) to[i] = narrowed<To>(f(widened(from[i])...));
  }
}

/// to[i] = f(from[i]…) in float, each element read and written once, 16 bytes at a time where the operands are aligned
/// to that. `to` may be one of `from`.
template <class F, class To, class... From>
void map(const Queue& queue, std::int64_t count, F f, To* to, const From*... from) {
  if (count == 0) return;
  constexpr int n = pack_of<To, From...>;
  const auto blocks = [&](int width) { return dim3(static_cast<unsigned>(blocks_for(count, map_threads * width))); };
  if (aligned(to, from...))
    launch(map_elements<n, F, To, From...>, blocks(n), map_threads, 0, queue.stream, count, f, to, from...);
  else
    launch(map_elements<1, F, To, From...>, blocks(1), map_threads, 0, queue.stream, count, f, to, from...);
}

}  // namespace foreshard::kernels::cuda
