#include "engine/cuda/step_memory.hpp"

#include <algorithm>
#include <cstring>
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
          .fault_row = -1};
}

std::vector<Rule> rules_of(const exec::StepContext& c) {
  std::vector<Rule> rules;
  for (const exec::ParameterRule& rule : c.rules)
    rules.push_back({rule.learning_rate_scale, rule.weight_decay, rule.update});
  return rules;
}

}  // namespace

void StepMemory::lay_out(const exec::StepContext& context) {
  const auto rules = static_cast<std::int64_t>(context.rules.size());
  const auto tokens = static_cast<std::int64_t>(context.tokens.size());
  if (rules <= capacity_rules_ && tokens <= capacity_tokens_) return;
  capacity_rules_ = std::max(rules, capacity_rules_);
  capacity_tokens_ = std::max(tokens, capacity_tokens_);
  const std::int64_t token_bytes = aligned(capacity_tokens_ * static_cast<std::int64_t>(sizeof(std::int32_t)));
  rules_at_ = aligned(sizeof(Step));
  tokens_at_ = rules_at_ + aligned(capacity_rules_ * static_cast<std::int64_t>(sizeof(Rule)));
  targets_at_ = tokens_at_ + token_bytes;
  device_ = DeviceMemory(targets_at_ + token_bytes);
  host_ = PinnedMemory(targets_at_ + token_bytes);
  ++generation_;
}

template <class T>
void StepMemory::put(std::int64_t offset, std::span<const T> values) {
  if (!values.empty()) std::memcpy(host_.data() + offset, values.data(), values.size_bytes());
}

void StepMemory::upload(const exec::StepContext& context, const Stream& stream) {
  lay_out(context);
  const Step step = step_of(context);
  put(0, std::span<const Step>(&step, 1));
  put(rules_at_, std::span<const Rule>(rules_of(context)));
  put(tokens_at_, context.tokens);
  put(targets_at_, context.targets);
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
