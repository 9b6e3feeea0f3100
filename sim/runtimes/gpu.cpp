#include "sim/runtimes/gpu.hpp"

#include "sim/virtual_time.hpp"

namespace foreshard::sim::torch {
namespace {

double seconds(Nanoseconds time) { return 1e-9 * static_cast<double>(time); }

double waves(std::int64_t blocks, int sms) { return static_cast<double>((blocks + sms - 1) / sms); }

}  // namespace

Gpu::Gpu(GpuKernels& kernels, const Software& software) : kernels_(&kernels), software_(software) {
  const cost::GpuProfile& profile = cost::gpu_profile();
  issue_s_ = (software.compiled ? profile.compiled_issue_s : profile.eager_issue_s).value;
  collective_issue_s_ = profile.collective_issue_s.value;
  if (software.compiled) traffic_ = profile.compiled_traffic.value;
}

void Gpu::product(std::int64_t batch, std::int64_t m, std::int64_t n, std::int64_t k, DType type, model::OpKind kind) {
  if (!kernels_) return;
  const auto moved = static_cast<double>(batch * (m * k + k * n + m * n) * size_bytes(type));
  run(kernels_->product(batch, m, n, k, type), moved, kind);
}

void Gpu::attention(const cost::Attention& attention, bool backward) {
  if (!kernels_) return;
  const auto kind = backward ? model::OpKind::attention_backward : model::OpKind::attention;
  run(kernels_->attention(attention, backward), 0, kind);
}

void Gpu::computes(double flops, double part_of_peak, DType type, model::OpKind kind) {
  if (kernels_ && flops > 0) run(kernels_->computes(flops / part_of_peak, type), 0, kind);
}

void Gpu::moves(std::int64_t bytes, model::OpKind kind) {
  if (!kernels_) return;
  Kernel kernel = kernels_->moves(static_cast<double>(bytes));
  kernel.seconds *= traffic_, kernel.memory_s *= traffic_;
  run(kernel, static_cast<double>(bytes), kind);
}

void Gpu::copies(std::int64_t bytes, model::OpKind kind) {
  if (kernels_) run(kernels_->moves(static_cast<double>(bytes)), static_cast<double>(bytes), kind);
}

void Gpu::run(const Kernel& kernel, double bytes, model::OpKind kind) {
  issue(issue_s_);
  const Nanoseconds start = time_.next_start(current_);
  if (current_ != Stream::compute) return keep(time_.run(current_, op_nanoseconds(kernel.seconds)), kind, bytes, unit_);
  host_bound_ += std::max<Nanoseconds>(0, time_.host() - time_.end_of(current_));
  const Span span = time_.run(current_, duration(kernel, start));
  busy_ += span.end - span.start;
  if (!compute_.empty() && compute_.back().end == span.start)
    compute_.back().end = span.end;
  else
    compute_.push_back(span);
  keep(span, kind, bytes, unit_);
}

double Gpu::speed_beside(const Kernel& kernel, const Load& load) const {
  double speed = 1;
  if (kernel.blocks > 0)
    speed = waves(kernel.blocks, kernels_->sms()) / waves(kernel.blocks, std::max(1, kernels_->sms() - load.sms));
  const double memory = kernel.memory_s / kernel.seconds, left = std::max(0.1, 1 - load.memory_part);
  return memory > left ? std::min(speed, left / memory) : speed;
}

/// Until `work` is done, at full speed between collectives and slower beside them.
Nanoseconds Gpu::duration(const Kernel& kernel, Nanoseconds start) {
  double work = kernel.seconds * 1e9 * kernels_->compute_factor();
  auto now = static_cast<double>(start - step_start_);
  const double begin = now;
  while (next_load_ < loads_before_.size() && static_cast<double>(loads_before_[next_load_].span.end) <= now)
    ++next_load_;
  for (std::size_t i = next_load_; i < loads_before_.size(); ++i) {
    const Load& load = loads_before_[i];
    const double before = std::max(0.0, static_cast<double>(load.span.start) - now);
    if (work <= before) break;
    work -= before, now += before;
    const double beside = std::max(0.0, static_cast<double>(load.span.end) - now), speed = speed_beside(kernel, load);
    if (work <= beside * speed) return op_nanoseconds(1e-9 * (now + work / speed - begin));
    work -= beside * speed, now += beside;
  }
  return op_nanoseconds(1e-9 * (now + work - begin));
}

void Gpu::collective(Communicator communicator, model::OpKind kind, std::int64_t bytes, std::size_t unit) {
  if (!kernels_) return;
  issue(collective_issue_s_);
  const Transfer& transfer = kernels_->collective(kind, static_cast<double>(bytes));
  const Span span = time_.run(current_, communicator, op_nanoseconds(transfer.seconds));
  loads_.push_back({{span.start - step_start_, span.end - step_start_}, transfer.memory_part, transfer.sms});
  keep(span, kind, static_cast<double>(bytes), static_cast<std::uint32_t>(unit));
}

void Gpu::block(Nanoseconds event) { blocked_ += time_.block(event); }

void Gpu::keep(const Span& span, model::OpKind kind, double bytes, std::uint32_t unit) {
  if (keeps_trace_) ran_.push_back({span, time_.host(), current_, kind, unit, backward_, phase_, bytes});
}

void Gpu::end_phase(Nanoseconds now) {
  now = std::max(now, phase_start_);
  phases_[static_cast<std::size_t>(phase_)] += now - phase_start_;
  phase_start_ = now;
}

void Gpu::begin_step() {
  step_start_ = phase_start_ = std::max(time_.host(), time_.end_of_all());
  phases_ = {};
  loads_before_ = std::exchange(loads_, {});
  std::ranges::sort(loads_before_, {}, [](const Load& load) { return load.span.start; });
  next_load_ = 0, host_bound_ = blocked_ = busy_ = 0;
  compute_.clear(), ran_.clear(), micro_batch_starts_.clear();
  time_.host_works(static_cast<Nanoseconds>(software_.step_host_s * 1e9));
}

StepTimes Gpu::end_step() {
  const Nanoseconds end = std::max(time_.host(), time_.end_of_all());
  if (software_.waits_for_step) time_.block(end);
  end_phase(end);
  const auto spent = [&](StepPhase phase) { return seconds(phases_[static_cast<std::size_t>(phase)]); };
  StepTimes times{.seconds = seconds(end - step_start_),
                  .compute_busy_s = seconds(busy_),
                  .host_bound_s = seconds(host_bound_),
                  .blocked_s = seconds(blocked_),
                  .forward_s = spent(StepPhase::forward),
                  .backward_s = spent(StepPhase::backward),
                  .update_s = spent(StepPhase::update)};
  add_exposed(times);
  return times;
}

/// Collectives of two communicators may overlap: time counts once.
void Gpu::add_exposed(StepTimes& times) const {
  std::vector<Span> spans;
  for (const Load& load : loads_) spans.push_back({load.span.start + step_start_, load.span.end + step_start_});
  std::ranges::sort(spans, {}, &Span::start);
  Nanoseconds seen = step_start_, busy = 0, covered = 0;
  std::size_t next = 0;
  for (Span span : spans) {
    span.start = std::max(span.start, seen);
    if (span.start >= span.end) continue;
    seen = span.end, busy += span.end - span.start;
    while (next < compute_.size() && compute_[next].end <= span.start) ++next;
    for (std::size_t i = next; i < compute_.size() && compute_[i].start < span.end; ++i)
      covered += std::min(span.end, compute_[i].end) - std::max(span.start, compute_[i].start);
  }
  times.communication_busy_s = seconds(busy), times.exposed_s = seconds(busy - covered);
}

}  // namespace foreshard::sim::torch
