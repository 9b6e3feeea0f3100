#include <array>
#include <utility>

#include "plan/builder.hpp"
#include "plan/gathers.hpp"
#include "plan/reductions.hpp"
#include "plan/schedule_update.hpp"
#include "plan/tensor_map.hpp"
#include "plan/visits.hpp"

namespace foreshard::plan {
namespace {

using model::Graph;
using model::Operator;
using model::Role;
using model::root_unit;
using model::TensorId;

int count_numbered(const std::vector<Visit>& visits) {
  int count = 0;
  for (const Visit& visit : visits) count += visit.number >= 0;
  return count;
}

/// A micro-batch is the graph's visits in order. Around each visit stand the gathers that wait for its end and the
/// reduction of its gradient; everything else about overlap and memory follows from their waits.
class Scheduler {
 public:
  Scheduler(const Graph& graph, std::vector<FlatParameter> units, const Mesh& mesh, const ScheduleOptions& options)
      : graph_(graph),
        options_(options),
        visits_(visits_of(graph)),
        around_(static_cast<std::size_t>(count_numbered(visits_))),
        build_(graph, std::move(units), mesh, options),
        tensors_(graph, build_),
        gathers_(build_, visits_, options, around_),
        reductions_(build_, options, around_) {}

  Plan training() {
    const int k = options_.micro_batches;
    if (k == 1) micro_batch(Segment::Name::only, true, true);
    if (k > 1) micro_batch(Segment::Name::first, true, false);
    if (k > 2) micro_batch(Segment::Name::middle, false, false);
    if (k > 1) micro_batch(Segment::Name::last, false, true);
    schedule_update(build_, options_.update);
    return std::move(build_.plan);
  }

  Plan evaluation() {
    build_.begin_segment(Segment::Name::evaluate);
    visit_all(true, true);
    sum_loss(build_, last_compute_);
    build_.end_segment();
    return std::move(build_.plan);
  }

 private:
  void micro_batch(Segment::Name name, bool first, bool last) {
    build_.begin_segment(name);
    visit_all(first, last);
    build_.end_segment();
  }

  void visit_all(bool first, bool last) {
    around_.assign(around_.size(), {});
    reductions_.begin_micro_batch(first, last);
    load_batch(first);
    gathers_.begin_micro_batch(first);
    for (const Visit& visit : visits_) run(visit);
    reductions_.end_micro_batch();
  }

  /// When a micro-batch begins to compute, the one before has reduced everything.
  void load_batch(bool first) {
    const std::int64_t rows = graph_[graph_.tokens].elements, targets = graph_[graph_.targets].elements;
    reductions_.add_waits_for_micro_batch_before(waits_);
    build_.op({.kind = OpKind::load_batch, .sizes = {.rows = rows}}, {},
              std::array{build_.tokens.valid() ? build_.words(build_.tokens, rows, DType::i32, true) : Operand{},
                         build_.words(build_.targets, targets, DType::i32, true)},
              waits_);
    waits_.clear();
    if (first)
      build_.op({.kind = OpKind::zero_fill, .sizes = {.rows = 2}}, {},
                std::array{build_.words(build_.local_loss, 2, DType::f64, true)});
  }

  void run(const Visit& visit) {
    gathers_.add_waits(visit, waits_);
    if (visit.phase == Phase::backward) begin_backward(visit);
    for (const Operator& op : std::span(graph_.operators).subspan(visit.first, visit.count)) compute(op, visit);
    end(visit);
  }

  void begin_backward(const Visit& visit) {
    reductions_.add_waits(visit, waits_);
    for (const UnitId unit : visit.begins)
      for (const FlatRange& unwritten : reductions_.begin_gradient(unit)) zero(unit, unwritten);
  }

  void zero(UnitId unit, const FlatRange& range) {
    const FlatParameter& f = build_.plan.units[unit.value];
    inputs_.clear();
    outputs_ = {Builder::words(reductions_.gradients_of(unit), range.elements, f.reduced, true, range.first)};
    issue_compute(
        {.kind = OpKind::zero_fill, .phase = Phase::backward, .unit = unit, .sizes = {.rows = range.elements}});
  }

  void compute(const Operator& op, const Visit& visit) {
    inputs_.clear();
    outputs_.clear();
    for (const TensorId id : op.inputs) inputs_.push_back(operand(id, visit, false));
    for (const TensorId id : op.outputs) outputs_.push_back(operand(id, visit, true));
    issue_compute({.kind = op.kind,
                   .phase = op.phase,
                   .unit = op.unit,
                   .sizes = op.sizes,
                   .accumulate = op.accumulate || adds_to_earlier_micro_batches(op),
                   .scalar = op.scalar,
                   .stream = op.stream});
  }

  Operand operand(TensorId id, const Visit& visit, bool written) {
    if (!is_of_unit(id)) return tensors_.operand(id, {}, {}, written);
    const model::Parameter& parameter = graph_.parameters[graph_[id].parameter.value];
    if (parameter.is_packed()) return packed_operand(id, gathers_.packed_of(visit, parameter.unit));
    return tensors_.operand(id, gathers_.parameters_of(visit, parameter.unit), reductions_.gradients_of(parameter.unit),
                            written);
  }

  bool is_of_unit(TensorId id) const {
    return id.valid() && (graph_[id].role == Role::parameter || graph_[id].role == Role::parameter_grad);
  }

  Operand packed_operand(TensorId id, const Gathers::Place& first) const {
    Operand words = tensors_.operand(id, first.buffer, {}, false);
    words.offset_bytes += first.offset_bytes;
    return words;
  }

  void issue_compute(const Builder::OpSpec& spec) {
    last_compute_ = build_.op(spec, inputs_, outputs_, waits_);
    waits_.clear();
  }

  bool adds_to_earlier_micro_batches(const Operator& op) const {
    if (!reductions_.adds_to_gradients()) return false;
    for (const TensorId id : op.outputs)
      if (id.valid() && graph_[id].role == Role::parameter_grad) return true;
    return false;
  }

  /// Around the end of a visit, the most urgent first: copies for gathers further ahead, the next visit's gather, the
  /// reduction, gathers further ahead.
  void end(const Visit& visit) {
    if (visit.number >= 0) around_[static_cast<std::size_t>(visit.number)].end = last_compute_;
    if (visit.closes_unit) build_.mark(Wait::On::freed, visit.unit, last_compute_);
    gathers_.retain(visit);
    if (visit.number >= 0) gathers_.fetch_after(visit.number);
    if (visit.number >= 0) gathers_.issue_next_after(visit.number);
    for (const UnitId unit : visit.completes) reductions_.reduce(unit, visit, last_compute_);
    if (visit.number >= 0) gathers_.issue_after(visit.number);
  }

  const Graph& graph_;
  const ScheduleOptions& options_;
  std::vector<Visit> visits_;
  std::vector<Around> around_;  // by visit number
  Builder build_;
  TensorMap tensors_;
  Gathers gathers_;
  Reductions reductions_;

  OpId last_compute_;
  std::vector<Wait> waits_;  // of the next compute op
  std::vector<Operand> inputs_, outputs_;
};

}  // namespace

Plan schedule(const Graph& graph, std::vector<FlatParameter> units, const Mesh& mesh, const ScheduleOptions& options) {
  return Scheduler(graph, std::move(units), mesh, options).training();
}

Plan schedule_evaluation(const Graph& forward, std::vector<FlatParameter> units, const Mesh& mesh,
                         const ScheduleOptions& options) {
  return Scheduler(forward, std::move(units), mesh, options).evaluation();
}

}  // namespace foreshard::plan
