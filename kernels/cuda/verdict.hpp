#pragma once
#include "kernels/cuda/backend.hpp"
#include "kernels/exact_sum.hpp"
#include "kernels/powers.hpp"

/// What the sums over all ranks say of a step, on the device: `norm_of` and engine::StepSums.
namespace foreshard::kernels::cuda {

/// Σ digits of ±words, carried, from the lowest up; `top` gets the highest digit, whose sign is the sum's.
__device__ inline double sum_of_digits(const std::int64_t* words, std::int64_t sign, std::int64_t& top) {
  double total = 0;
  std::int64_t carry = 0;
  for (int i = 0; i < limb_format::limbs; ++i) {
    top = sign * words[i] + carry;
    const std::int64_t digit = i + 1 < limb_format::limbs ? top & limb_format::mask : top;
    carry = top >> limb_format::bits;
    total += ldexp(static_cast<double>(digit), limb_format::bits * i + limb_format::lowest_exponent);
  }
  return total;
}

__device__ inline double exact_value(const std::int64_t* words) {
  if (words[limb_format::mark] != 0) return NAN;
  std::int64_t top = 0;
  const double value = sum_of_digits(words, 1, top);
  return top >= 0 ? value : -sum_of_digits(words, -1, top);
}

__device__ inline double norm(float power, const std::int64_t* words, std::int64_t count) {
  if (isinf(power)) {
    std::int64_t largest = words[0];
    for (std::int64_t i = 1; i < count; ++i) largest = words[i] > largest ? words[i] : largest;
    return std::bit_cast<double>(largest);
  }
  const double sum = exact_value(words);
  if (power == 1) return sum;
  return power == 2 ? sqrt(sum) : cbrt(sum) / cube_scale;
}

struct Verdict {
  bool finite;
  double gradient_scale;
};

struct StepWords {
  float norm_power;
  const std::int64_t* norm_words;
  std::int64_t word_count;
  const double* loss;  ///< {Σ of the token losses, valid tokens}
};

__device__ inline Verdict verdict_of(const Step& step, const StepWords& sums) {
  const double tokens = sums.loss[1], of_sum = norm(sums.norm_power, sums.norm_words, sums.word_count);
  const double of_mean = of_sum / ((tokens > 1 ? tokens : 1) * step.loss_scale);
  const double limited = step.max_norm / (of_mean + 1e-6), clip = step.max_norm > 0 && limited < 1 ? limited : 1;
  return {isfinite(sums.loss[0]) && isfinite(of_mean), tokens == 0 ? 0.0 : clip / (tokens * step.loss_scale)};
}

}  // namespace foreshard::kernels::cuda
