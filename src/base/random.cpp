#include "base/random.hpp"

#include <cmath>
#include <numbers>

namespace foreshard {

double normal(std::uint64_t key, std::uint64_t index) {
  const auto words = philox(key, 0, index / 2);
  const double radius = std::sqrt(-2.0 * std::log(uniform(words[0])));
  const double angle = 2.0 * std::numbers::pi * uniform(words[1]);
  return radius * (index % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

}  // namespace foreshard
