#include "kernels/powers.hpp"

#include <algorithm>

namespace foreshard::kernels {
namespace {

double largest_of(std::span<const std::int64_t> words) {
  return std::bit_cast<double>(*std::ranges::max_element(words));
}

}  // namespace

double norm_of(float power, std::span<const std::int64_t> words) {
  if (std::isinf(power)) return largest_of(words);
  const double sum = value_of(words.first<ExactSum::words>());
  if (power == 1) return sum;
  return power == 2 ? std::sqrt(sum) : std::cbrt(sum) / cube_scale;
}

}  // namespace foreshard::kernels
