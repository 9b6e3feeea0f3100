#pragma once
#include <cmath>
#include <cstdint>
#include <span>

namespace foreshard::engine {

/// What a step's sums over all ranks say; the same bits on every rank.
struct StepSums {
  double loss = 0;           ///< Σ of the token losses
  double tokens = 0;         ///< valid ones
  double gradient_norm = 0;  ///< of the mean gradient, before clipping

  /// The verdict on the step: nothing in its loss or its gradient is infinite or not a number.
  bool finite() const { return std::isfinite(loss) && std::isfinite(gradient_norm); }

  /// What makes a summed, scaled gradient the clipped mean: 1 / (tokens · loss_scale), times
  /// max_norm / (norm + 1e-6), at most 1, as torch.nn.utils.clip_grad_norm_; max_norm 0 never clips. 0 without tokens.
  double gradient_scale(double max_norm, double loss_scale) const;
};

/// From the words of the norm that `norm_power` names, and {loss, tokens}. The gradient's words are of its sum over
/// tokens times `loss_scale`.
StepSums step_sums(float norm_power, std::span<const std::int64_t> norm_words, const double* loss, double loss_scale);

}  // namespace foreshard::engine
