#pragma once
#include <array>

#include "engine/cuda/memory.hpp"
#include "engine/cuda/stream.hpp"
#include "engine/loss_fault.hpp"
#include "exec/step_context.hpp"
#include "kernels/cuda/backend.hpp"

namespace foreshard::engine::cuda {

/// What varies from step to step, in device memory: kernels read it there, so that captured graphs can be replayed.
class StepMemory {
 public:
  /// Queues the upload of a step; the step before has ended. Grows only when a step has more of something than any
  /// before it.
  void upload(const exec::StepContext& context, const Stream& stream);

  /// After the step: what the device noted in it. Waits for the stream.
  LossFault loss_fault(const Stream& stream);

  kernels::cuda::Step* step() const { return as<kernels::cuda::Step>(device_); }
  const kernels::cuda::Rule* rules() const { return part<kernels::cuda::Rule>(1); }
  const std::int32_t* tokens() const { return part<std::int32_t>(2); }
  const std::int32_t* targets() const { return part<std::int32_t>(3); }
  const float* images() const { return part<float>(4); }

  /// Changes where captured graphs that hold the addresses above become wrong.
  std::int64_t generation() const { return generation_; }

 private:
  /// The step itself, rules, tokens, targets, images.
  static constexpr std::size_t parts = 5;
  using Contents = std::array<std::span<const std::byte>, parts>;

  template <class T>
  const T* part(std::size_t index) const {
    return reinterpret_cast<const T*>(device_.data() + places_[index]);
  }
  void lay_out(const Contents& contents);

  DeviceMemory device_;
  PinnedMemory host_;                                  // the same layout
  std::array<std::int64_t, parts> places_{}, room_{};  // bytes
  std::int64_t generation_ = 0;
};

}  // namespace foreshard::engine::cuda
