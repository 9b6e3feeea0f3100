#pragma once
#include <algorithm>
#include <array>
#include <chrono>

#include "kernels/matmul_route.hpp"

namespace foreshard::kernels {

/// Calls run(route) for both routes, several times in turn, and compares their median times.
template <class Run>
MatmulRoute faster_route(Run run) {
  constexpr int rounds = 5;
  const auto seconds = [&run](MatmulRoute route) {
    const auto start = std::chrono::steady_clock::now();
    run(route);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  std::array<double, rounds> native, widened;
  for (int round = 0; round < rounds; ++round) {
    native[round] = seconds(MatmulRoute::native);
    widened[round] = seconds(MatmulRoute::widened);
  }
  std::ranges::sort(native);
  std::ranges::sort(widened);
  return native[rounds / 2] < widened[rounds / 2] ? MatmulRoute::native : MatmulRoute::widened;
}

}  // namespace foreshard::kernels
