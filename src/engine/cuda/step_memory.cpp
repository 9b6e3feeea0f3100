#include "engine/cuda/step_memory.hpp"

#include <algorithm>
#include <vector>

#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {
namespace {

using kernels::cuda::check;
using kernels::cuda::Rule;
using kernels::cuda::Step;

std::int64_t aligned(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

Step step_of(const exec::StepContext& c) {
  return {.dropout_key = c.dropout_key,
          .learning_rate = c.learning_rate,
          .beta1 = c.beta1,
          .beta2 = c.beta2,
          .epsilon = c.epsilon,
          .momentum = c.momentum,
          .nesterov = c.nesterov,
          .loss_scale = c.loss_scale,
          .max_norm = c.max_norm,
          .clip_value = c.clip_value,
          .micro_batch = 0,
          .fault_micro_batch = -1,
          .fault_row = -1,
          .rounding_key = c.rounding_key,
          .stochastic_rounding = c.stochastic_rounding};
}

std::vector<Rule> rules_of(const exec::StepContext& c) {
  std::vector<Rule> rules;
  for (const exec::ParameterRule& rule : c.rules)
    rules.push_back({rule.learning_rate_scale, rule.weight_decay, rule.update});
  return rules;
}

}  // namespace

void StepMemory::lay_out(const Contents& contents) {
  bool fits = true;
  for (std::size_t i = 0; i < parts; ++i) {
    const auto needed = static_cast<std::int64_t>(contents[i].size());
    fits = fits && needed <= room_[i];
    room_[i] = std::max(needed, room_[i]);
  }
  if (fits) return;
  std::int64_t end = 0;
  for (std::size_t i = 0; i < parts; ++i) end = (places_[i] = end) + aligned(room_[i]);
  device_ = DeviceMemory(end);
  host_ = PinnedMemory(end);
  ++generation_;
}

void StepMemory::upload(const exec::StepContext& context, const Stream& stream) {
  const Step step = step_of(context);
  const std::vector<Rule> rules = rules_of(context);
  const Contents contents{std::as_bytes(std::span(&step, 1)), std::as_bytes(std::span(rules)),
                          std::as_bytes(context.tokens), std::as_bytes(context.targets), std::as_bytes(context.images)};
  lay_out(contents);
  for (std::size_t i = 0; i < parts; ++i) std::ranges::copy(contents[i], host_.data() + places_[i]);
  check(cudaMemcpyAsync(device_.data(), host_.data(), host_.bytes().size(), cudaMemcpyHostToDevice, stream.get()),
        "cudaMemcpyAsync");
}

LossFault StepMemory::loss_fault(const Stream& stream) {
  check(cudaMemcpyAsync(host_.data(), device_.data(), sizeof(Step), cudaMemcpyDeviceToHost, stream.get()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  const Step* step = as<Step>(host_);
  return {step->fault_micro_batch, step->fault_row};
}

}  // namespace foreshard::engine::cuda
