#pragma once
#include <array>
#include <string>

#include "engine/cuda/memory.hpp"
#include "engine/pulse.hpp"
#include "kernels/cuda/backend.hpp"
#include "plan/plan.hpp"

namespace foreshard::engine::cuda {

/// How far the device has come on each lane, in host memory that it writes: also while a captured graph runs, and after
/// it has failed.
class Progress {
 public:
  /// Queues a mark behind `op`, which is of `plan`.
  void mark(const plan::Plan& plan, const plan::Op& op, kernels::cuda::Kernels& kernels);
  /// Tells `pulse` of marks that have come since the last call.
  void report(Pulse& pulse);
  /// "compute after linear u3, gather after all_gather u4"
  std::string text(const plan::Plan& plan) const;

 private:
  volatile std::uint64_t* words() const { return as<volatile std::uint64_t>(memory_); }

  PinnedMemory memory_{plan::lane_count * static_cast<std::int64_t>(sizeof(std::uint64_t))};  // 1 + op, by lane
  std::array<std::uint64_t, plan::lane_count> seen_{}, marks_{};
};

}  // namespace foreshard::engine::cuda
