#include <cmath>

#include "kernels/backend.hpp"

namespace foreshard::kernels {

double Attention::slope(std::int64_t head) const { return alibi == 0 ? 0 : std::exp2(slope_exponent(head)); }

double Rotary::frequency(std::int64_t j) const {
  return std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(width));
}

}  // namespace foreshard::kernels
