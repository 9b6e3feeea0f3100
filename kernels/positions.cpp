#include <bit>
#include <cmath>

#include "kernels/backend.hpp"

namespace foreshard::kernels {

double Attention::slope(std::int64_t head) const {
  if (alibi == 0) return 0;
  const auto power = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(heads)));
  const std::int64_t even = 2 * (head + 1), n = power == heads ? head + 1 : even <= power ? even : even - power - 1;
  return std::exp2(-static_cast<double>(alibi) * static_cast<double>(n) / static_cast<double>(power));
}

double Rotary::frequency(std::int64_t j) const {
  return std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(width));
}

}  // namespace foreshard::kernels
