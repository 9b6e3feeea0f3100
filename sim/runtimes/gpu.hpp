#pragma once
#include <array>
#include <utility>
#include <vector>

#include "sim/runtimes/gpu_kernels.hpp"
#include "sim/runtimes/live_bytes.hpp"
#include "sim/runtimes/timeline.hpp"

namespace foreshard::sim::torch {

/// Something that ran on a stream.
struct Ran {
  Span span;
  Nanoseconds issued = 0;  ///< when the host had issued it
  Stream stream{};
  model::OpKind kind{};
  std::uint32_t unit = 0;
  bool backward = false;
  StepPhase phase = StepPhase::forward;  ///< in which the host issued it
  double bytes = 0;                      ///< of a collective's whole buffer; of a kernel, what it moves
};

/// What a GPU and its host did in one step.
struct StepTimes {
  double seconds = 0;
  double compute_busy_s = 0, communication_busy_s = 0;
  double exposed_s = 0;     ///< a collective runs, the compute stream does not
  double host_bound_s = 0;  ///< the compute stream waits for the host to issue
  double blocked_s = 0;     ///< the host waits for the device, by the limiter or in the allocator
  double forward_s = 0, backward_s = 0, update_s = 0;  ///< of all micro-batches, by when the compute stream ends each
};

/// A GPU to which eager operators and wrappers issue kernels, copies and collectives, in virtual time.
///
/// A kernel starts when its host has issued it and its stream is free. On the compute stream it is slowed while
/// collectives run: they hold an SM for each channel (a product's waves grow) and take part of the memory's bandwidth.
/// Which collectives run beside a kernel is taken from the step before, since one that is issued later may already run
/// beside it; steps repeat, so that after two or three of them nothing changes any more.
///
/// Without kernels (`GpuKernels`) nothing takes time.
class Gpu {
 public:
  Gpu() = default;
  /// `kernels` must outlive this.
  Gpu(GpuKernels& kernels, const Software& software);

  Timeline& time() { return time_; }
  const Timeline& time() const { return time_; }
  bool is_timed() const { return kernels_ != nullptr; }

  // Eager operators, on the current stream.
  void product(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, DType type, model::OpKind kind);
  void attention(const cost::Attention& attention, bool backward);
  /// An operator of which only FLOPs are known, and what part of the device's peak for the type they reach.
  void computes(double flops, double part_of_peak, DType type, model::OpKind kind);
  /// An operator on elements that moves `bytes`; part of a compiled region where there is one.
  void moves(std::int64_t bytes, model::OpKind kind);
  /// A copy, cast or update that is never compiled.
  void copies(std::int64_t bytes, model::OpKind kind);
  /// Of a unit's whole buffer, on the current stream.
  void collective(Communicator communicator, model::OpKind kind, std::int64_t bytes, std::size_t unit);
  /// A buffer that a collective uses: recorded where the process group does so.
  void used_by(Communicator communicator, const Storage& buffer) const {
    if (software_.records_collectives) buffer.record(communicator);
  }
  /// The host waits for an event.
  void block(Nanoseconds event);

  Stream current() const { return current_; }
  /// What runs from now on belongs to.
  void enter(std::size_t unit, bool backward) { unit_ = static_cast<std::uint32_t>(unit), backward_ = backward; }

  /// A step: its phases begin when the host says so, and end when the compute stream has done what they issued.
  void begin_step();
  void begin_micro_batch() {
    micro_batch_starts_.push_back(ran_.size());
    begin(StepPhase::forward);
    step_is_begun_ = true;
  }
  void begin_backward() { begin(StepPhase::backward); }
  void begin_update() { begin(StepPhase::update); }
  /// Of what the host does now; before the first step it is none.
  StepPhase phase() const { return phase_; }
  bool step_is_begun() const { return step_is_begun_; }
  std::uint32_t unit() const { return unit_; }
  StepTimes end_step();
  /// All that ran in the last step, in the order of issue; empty unless `keep_trace` was called.
  const std::vector<Ran>& ran() const { return ran_; }
  /// Where in `ran` its micro-batches begin.
  const std::vector<std::size_t>& micro_batch_starts() const { return micro_batch_starts_; }
  void keep_trace() { keeps_trace_ = true; }
  Nanoseconds step_start() const { return step_start_; }

 private:
  friend class OnStream;
  /// A collective of the step before, in time since its beginning.
  struct Load {
    Span span;
    double memory_part = 0;
    int sms = 0;
  };

  void issue(double seconds) {
    time_.host_works(static_cast<Nanoseconds>(seconds * 1e9));
    block(time_.room_in(current_));
  }
  void begin(StepPhase phase) { end_phase(time_.end_of(Stream::compute)), phase_ = phase; }
  /// The time since the last one ended is the current phase's.
  void end_phase(Nanoseconds now);
  void run(const Kernel& kernel, double bytes, model::OpKind kind);
  Nanoseconds duration(const Kernel& kernel, Nanoseconds start);
  double speed_beside(const Kernel& kernel, const Load& load) const;
  void keep(const Span& span, model::OpKind kind, double bytes, std::uint32_t unit);
  void add_exposed(StepTimes& times) const;

  GpuKernels* kernels_ = nullptr;
  Software software_;
  double issue_s_ = 0, collective_issue_s_ = 0;
  double traffic_ = 1;  ///< of operators on elements, over the eager ones'
  Timeline time_;
  Stream current_ = Stream::compute;
  std::uint32_t unit_ = 0;
  StepPhase phase_ = StepPhase::forward;
  bool backward_ = false, keeps_trace_ = false, step_is_begun_ = false;
  Nanoseconds step_start_ = 0, phase_start_ = 0, host_bound_ = 0, blocked_ = 0, busy_ = 0;
  std::array<Nanoseconds, 3> phases_{};  ///< of this step, by StepPhase
  std::vector<Span> compute_;            ///< of this step, joined where they touch
  std::vector<Load> loads_, loads_before_;
  std::size_t next_load_ = 0;
  std::vector<Ran> ran_;
  std::vector<std::size_t> micro_batch_starts_;
};

/// What is issued and allocated while it lives belongs to a stream.
class OnStream {
 public:
  OnStream(Gpu& gpu, Stream stream) : gpu_(gpu), before_(std::exchange(gpu.current_, stream)) {}
  ~OnStream() { gpu_.current_ = before_; }
  OnStream(const OnStream&) = delete;
  OnStream& operator=(const OnStream&) = delete;

 private:
  Gpu& gpu_;
  Stream before_;
};

}  // namespace foreshard::sim::torch
