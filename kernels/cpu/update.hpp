#pragma once
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {

/// The gradient that an update works with: scaled, then cut to ±limit.
struct UpdateGradient {
  explicit UpdateGradient(const Update& o)
      : scale(static_cast<float>(o.grad_scale)), limit(static_cast<float>(o.clip_value)) {}
  template <class Grad>
  float operator()(Grad grad) const {
    const float g = static_cast<float>(grad) * scale, low = g < -limit ? -limit : g;
    return low > limit ? limit : low;
  }
  float scale, limit;
};

/// Shares elements [0, count) among the team: `move(i, grad[i])` updates element i.
template <class Move>
void update_elements(std::int64_t count, const Const& gradient, Move move) {
  by_number(gradient.dtype, [&]<class Grad>(Grad) {
    share(count, grain_elements, [move, grad = as<Grad>(gradient)](std::int64_t begin, std::int64_t end) {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) move(i, grad[i]);
    });
  });
}

}  // namespace foreshard::kernels::cpu
