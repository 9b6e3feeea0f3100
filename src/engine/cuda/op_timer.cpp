#include "engine/cuda/op_timer.hpp"

#include <cmath>

#include "base/clock.hpp"
#include "engine/cuda/collectives.hpp"
#include "kernels/cuda/check.hpp"

namespace foreshard::engine::cuda {

void OpTimer::begin_step(const Stream& stream) {
  used_ = 0;
  stream.record(origin_);
  kernels::cuda::check(cudaEventSynchronize(origin_.get()), "cudaEventSynchronize");
  origin_ns_ = now_ns();
}

void OpTimer::begin_op(const exec::Instance& instance, const Stream& stream) {
  if (used_ == spans_.size()) spans_.emplace_back();
  spans_[used_].instance = instance;
  stream.record(spans_[used_].begin);
}

void OpTimer::end_op(const Stream& stream) { stream.record(spans_[used_++].end); }

void OpTimer::record(const plan::Plan& plan, std::int64_t step, trace::Recorder& recorder) {
  for (std::size_t i = 0; i < used_; ++i) {
    const auto& [instance, begin, end] = spans_[i];
    const plan::Op& op = *instance.op;
    recorder.record(op.lane,
                    {.start_ns = origin_ns_ + std::llround(elapsed_ns(origin_, begin)),
                     .duration_ns = std::llround(elapsed_ns(begin, end)),
                     .op = static_cast<std::uint32_t>(&op - plan.ops.data()),
                     .step = static_cast<std::int32_t>(step),
                     .micro_batch = instance.micro_batch,
                     .received_bytes = plan::is_collective(op.kind) ? static_cast<std::uint64_t>(op.wire_bytes) : 0});
  }
}

}  // namespace foreshard::engine::cuda
