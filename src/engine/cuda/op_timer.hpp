#pragma once
#include <cstdint>
#include <vector>

#include "engine/cuda/stream.hpp"
#include "exec/executor.hpp"
#include "plan/plan.hpp"
#include "trace/recorder.hpp"

namespace foreshard::engine::cuda {

/// When each op of a step ran on its stream, by events around it. The first event ties the device's clock to the
/// host's.
class OpTimer {
 public:
  /// Nothing is in flight. Waits for the device once.
  void begin_step(const Stream& stream);
  void begin_op(const exec::Instance& instance, const Stream& stream);
  void end_op(const Stream& stream);

  /// After the step has ended: its events. `received` are those of collectives.
  void record(const plan::Plan& plan, std::int64_t step, trace::Recorder& recorder);

 private:
  struct Span {
    exec::Instance instance;
    Event begin{Event::Kind::time}, end{Event::Kind::time};
  };
  Event origin_{Event::Kind::time};
  std::int64_t origin_ns_ = 0;
  std::vector<Span> spans_;  // the events are kept for later steps
  std::size_t used_ = 0;
};

}  // namespace foreshard::engine::cuda
