#include "sim/planner/time_parts.hpp"

#include <algorithm>
#include <numeric>

#include "sim/gpu_op_cost.hpp"

namespace foreshard::sim::planner {
namespace {

using plan::Lane;
using plan::OpKind;
using trace::Event;

std::size_t index(auto value) { return static_cast<std::size_t>(value); }
double seconds(std::int64_t ns) { return 1e-9 * static_cast<double>(ns); }

Kernel kernel_of(OpKind kind) {
  if (kind == OpKind::attention || kind == OpKind::attention_backward || kind == OpKind::full_attention ||
      kind == OpKind::full_attention_backward || kind == OpKind::reattention || kind == OpKind::reattention_backward)
    return Kernel::attention;
  const bool product =
      kind == OpKind::linear || kind == OpKind::linear_input_grad || kind == OpKind::linear_weight_grad;
  return product ? Kernel::product : Kernel::rest;
}

/// Kinds that only forward has, apart from sums, casts and dropout, whose backward is of the same kind.
bool is_forward(OpKind kind) {
  switch (kind) {
    case OpKind::embedding:
    case OpKind::layer_norm:
    case OpKind::add_layer_norm:
    case OpKind::rms_norm:
    case OpKind::add_rms_norm:
    case OpKind::linear:
    case OpKind::attention:
    case OpKind::gelu:
    case OpKind::rotary:
    case OpKind::swiglu:
    case OpKind::gelu_exact:
    case OpKind::full_attention:
    case OpKind::reattention:
    case OpKind::relative_bias:
    case OpKind::relu:
    case OpKind::geglu:
    case OpKind::image_tokens:
    case OpKind::first_token:
    case OpKind::opaque:
      return true;
    default:
      return false;
  }
}

Work work_of(const plan::Op& op) {
  if (op.phase == plan::Phase::update) return Work::update;
  if (op.phase == plan::Phase::forward) return Work::forward;
  return is_forward(op.kind) ? Work::recompute : Work::backward;
}

class Sum {
 public:
  Sum(const plan::Plan& plan, const Prediction& prediction, const Cluster& cluster)
      : plan_(plan),
        simulation_(prediction.simulation),
        slowest_(prediction.gpu->slowest_rank_factor),
        alone_(plan, cluster, cost::gpu_profile(), 1) {
    for (const Event& event : simulation_.events)
      (lane_of(event) == Lane::compute ? compute_ : others_).push_back(event);
    std::ranges::sort(compute_, {}, &Event::start_ns);
    std::ranges::sort(others_, {}, end_of);
  }

  TimeParts run() {
    std::int64_t free_ns = 0;
    for (const Event& event : compute_) {
      wait(free_ns, event.start_ns, times(event));
      add(event, times(event));
      free_ns = end_of(event);
    }
    std::int64_t last_ns = free_ns;
    for (const Event& event : others_) last_ns = std::max(last_ns, end_of(event));
    wait(free_ns, last_ns, 1);
    return parts_;
  }

 private:
  static std::int64_t end_of(const Event& event) { return event.start_ns + event.duration_ns; }
  Lane lane_of(const Event& event) const { return plan_.ops[event.op].lane; }
  int times(const Event& event) const {
    return event.micro_batch == simulation_.repeated && simulation_.copies > 0 ? 1 + simulation_.copies : 1;
  }

  /// Back from the end of a wait: the op that ended then, and before it began the one that it had waited for, …
  void wait(std::int64_t from_ns, std::int64_t to_ns, int times) {
    while (to_ns > from_ns) {
      const auto last = std::ranges::lower_bound(others_, to_ns, {}, end_of);
      const bool found = last != others_.end() && end_of(*last) == to_ns;
      const std::int64_t since_ns = found ? std::max(from_ns, last->start_ns) : from_ns;
      double& part = found ? parts_.exposed_s[index(lane_of(*last))] : parts_.other_s;
      part += times * seconds(to_ns - since_ns);
      to_ns = since_ns;
    }
  }

  void add(const Event& event, int times) {
    const plan::Op& op = plan_.ops[event.op];
    const double alone = seconds(alone_(op).duration_ns), took = seconds(event.duration_ns);
    const double slowed = std::min(took, slowest_ * alone);
    parts_.work_s[index(work_of(op))][index(kernel_of(op.kind))] += times * std::min(took, alone);
    parts_.slowest_rank_s += times * (slowed - std::min(took, alone));
    parts_.beside_s += times * (took - slowed);
  }

  const plan::Plan& plan_;
  const Simulation& simulation_;
  double slowest_;
  GpuOpCost alone_;
  std::vector<Event> compute_, others_;  // by start; by end
  TimeParts parts_;
};

}  // namespace

double TimeParts::of(Work work) const {
  const auto& kernels = work_s[index(work)];
  return std::accumulate(kernels.begin(), kernels.end(), 0.0);
}

double TimeParts::total() const {
  double sum = slowest_rank_s + beside_s + other_s;
  for (std::size_t work = 0; work < work_s.size(); ++work) sum += of(static_cast<Work>(work));
  return std::accumulate(exposed_s.begin(), exposed_s.end(), sum);
}

TimeParts time_parts(const plan::Plan& plan, const Prediction& prediction, const Cluster& cluster) {
  return Sum(plan, prediction, cluster).run();
}

}  // namespace foreshard::sim::planner
