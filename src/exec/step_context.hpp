#pragma once
#include <cstdint>
#include <span>

namespace foreshard::exec {

/// How the optimizer treats one parameter.
struct ParameterRule {
  double learning_rate_scale = 1;
  double weight_decay = 0;
  std::int64_t update = 1;  ///< counted from 1 without steps that left it out or were skipped; for bias corrections
};

/// What varies from step to step. Ops read it; the plan does not change.
struct StepContext {
  std::int64_t step = 1;            ///< counted from 1
  std::uint64_t dropout_key = 0;    ///< differs by step
  bool stochastic_rounding = true;  ///< of parameters that are kept in bf16, when they are updated; else to nearest
  std::uint64_t rounding_key = 0;   ///< of its random bits; differs by step
  double learning_rate = 0, beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, momentum = 0;
  bool nesterov = false;
  std::span<const ParameterRule> rules;           ///< by ParameterId
  double loss_scale = 1;                          ///< the loss is multiplied by it before backward
  double max_norm = 1.0;                          ///< clip the global gradient norm to this; 0 = never
  double clip_value = 0;                          ///< then cut each element to ± this; 0 = never
  std::span<const std::int32_t> tokens, targets;  ///< all micro-batches of this rank; target −1 = ignored
  std::span<const float> images;  ///< patches of all micro-batches of this rank, where the plan is of images
};

}  // namespace foreshard::exec
