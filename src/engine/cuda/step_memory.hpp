#pragma once
#include "engine/cuda/memory.hpp"
#include "engine/cuda/stream.hpp"
#include "engine/loss_fault.hpp"
#include "exec/step_context.hpp"
#include "kernels/cuda/backend.hpp"

namespace foreshard::engine::cuda {

/// What varies from step to step, in device memory: kernels read it there, so that captured graphs can be replayed.
class StepMemory {
 public:
  /// Queues the upload of a step; the step before has ended. Grows only when a step has more rules or tokens than any
  /// before it.
  void upload(const exec::StepContext& context, const Stream& stream);

  /// After the step: what the device noted in it. Waits for the stream.
  LossFault loss_fault(const Stream& stream);

  kernels::cuda::Step* step() const { return as<kernels::cuda::Step>(device_); }
  const kernels::cuda::Rule* rules() const { return as<kernels::cuda::Rule>(device_at(rules_at_)); }
  const std::int32_t* tokens() const { return as<std::int32_t>(device_at(tokens_at_)); }
  const std::int32_t* targets() const { return as<std::int32_t>(device_at(targets_at_)); }

  /// Changes where captured graphs that hold the addresses above become wrong.
  std::int64_t generation() const { return generation_; }

 private:
  struct View {
    std::byte* at;
    std::byte* data() const { return at; }
  };
  View device_at(std::int64_t offset) const { return {device_.data() + offset}; }
  void lay_out(const exec::StepContext& context);
  template <class T>
  void put(std::int64_t offset, std::span<const T> values);

  DeviceMemory device_;
  PinnedMemory host_;  // the same layout
  std::int64_t rules_at_ = 0, tokens_at_ = 0, targets_at_ = 0, capacity_rules_ = -1, capacity_tokens_ = -1;
  std::int64_t generation_ = 0;
};

}  // namespace foreshard::engine::cuda
