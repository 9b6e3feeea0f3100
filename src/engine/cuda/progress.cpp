#include "engine/cuda/progress.hpp"

#include <fmt/format.h>

namespace foreshard::engine::cuda {

void Progress::mark(const plan::Plan& plan, const plan::Op& op, kernels::cuda::Kernels& kernels) {
  kernels.mark(as<std::uint64_t>(memory_) + static_cast<std::size_t>(op.lane),
               static_cast<std::uint64_t>(&op - plan.ops.data()) + 1);
}

void Progress::report(Pulse& pulse) {
  for (std::size_t lane = 0; lane < plan::lane_count; ++lane) {
    const std::uint64_t now = words()[lane];
    if (now == seen_[lane]) continue;
    seen_[lane] = now;
    pulse.enter(static_cast<plan::Lane>(lane), ++marks_[lane], static_cast<std::uint32_t>(now - 1), 0);
    pulse.leave(static_cast<plan::Lane>(lane), marks_[lane]);
  }
}

std::string Progress::text(const plan::Plan& plan) const {
  std::string text;
  for (std::size_t lane = 0; lane < plan::lane_count; ++lane) {
    const std::uint64_t done = words()[lane];
    if (done == 0 || done > plan.ops.size()) continue;
    const plan::Op& op = plan.ops[done - 1];
    text += fmt::format("{}{} after {}", text.empty() ? "" : ", ", name_of(op.lane), plan::name_of(plan, op));
  }
  return text.empty() ? "before the end of any op" : text;
}

}  // namespace foreshard::engine::cuda
