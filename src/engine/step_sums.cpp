#include "engine/step_sums.hpp"

#include <algorithm>

#include "kernels/backend.hpp"

namespace foreshard::engine {

double StepSums::gradient_scale(double max_norm, double loss_scale) const {
  if (tokens == 0) return 0;
  const double clip = max_norm > 0 ? std::min(1.0, max_norm / (gradient_norm + 1e-6)) : 1.0;
  return clip / (tokens * loss_scale);
}

StepSums step_sums(float norm_power, std::span<const std::int64_t> norm_words, const double* loss, double loss_scale) {
  const double tokens = loss[1], norm = kernels::norm_of(norm_power, norm_words);
  return {loss[0], tokens, norm / (std::max(tokens, 1.0) * loss_scale)};
}

}  // namespace foreshard::engine
