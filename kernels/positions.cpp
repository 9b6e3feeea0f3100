#include <algorithm>
#include <cmath>

#include "kernels/backend.hpp"

namespace foreshard::kernels {

double Attention::scale() const { return scaled ? 1 / std::sqrt(static_cast<double>(width)) : 1; }

double Reattention::scale() const { return 1 / std::sqrt(static_cast<double>(width)); }

double Attention::slope(std::int64_t head) const { return alibi == 0 ? 0 : std::exp2(slope_exponent(head)); }

double Rotary::frequency(std::int64_t j) const {
  return std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(width));
}

/// Half of a direction's buckets are of one distance each, the others of logarithmically more: in float, as published
/// weights were trained.
std::int64_t RelativeBias::bucket(std::int64_t distance) const {
  const std::int64_t count = both_ways ? buckets / 2 : buckets, first = both_ways && distance > 0 ? count : 0;
  const std::int64_t away = both_ways ? std::abs(distance) : std::max<std::int64_t>(0, -distance), exact = count / 2;
  if (away < exact) return first + away;
  const auto of_exact = [&](std::int64_t d) { return static_cast<float>(d) / static_cast<float>(exact); };
  const auto range = static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const float place = std::log(of_exact(away)) / range * static_cast<float>(count - exact);
  return first + std::min(count - 1, exact + static_cast<std::int64_t>(place));
}

}  // namespace foreshard::kernels
