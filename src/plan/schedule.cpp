#include <algorithm>
#include <array>
#include <utility>

#include "plan/builder.hpp"
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

/// A micro-batch is the graph's visits in order. Around each visit stand the gathers that wait for its end and the
/// reduction of its gradient; everything else about overlap and memory follows from their waits.
class Scheduler {
 public:
  Scheduler(const Graph& graph, std::vector<FlatParameter> units, const Mesh& mesh, const ScheduleOptions& options)
      : graph_(graph),
        options_(options),
        visits_(visits_of(graph)),
        rules_(gather_rules(visits_, options)),
        build_(graph, std::move(units), mesh, options),
        tensors_(graph, build_),
        gathers_(mesh.shard_degree() > 1),
        reduces_(mesh.world_size() > 1),
        of_visit_(visits_.size()),
        of_unit_(build_.unit_count()) {}

  Plan training() {
    const int k = options_.micro_batches;
    if (k == 1) micro_batch(Segment::Name::only, true);
    if (k > 1) micro_batch(Segment::Name::first, true);
    if (k > 2) micro_batch(Segment::Name::middle, false);
    if (k > 1) micro_batch(Segment::Name::last, false);
    schedule_update(build_);
    return std::move(build_.plan);
  }

  Plan evaluation() {
    build_.begin_segment(Segment::Name::evaluate);
    visit_all(true);
    sum_loss(build_, last_compute_);
    build_.end_segment();
    return std::move(build_.plan);
  }

 private:
  /// What belongs to one visit. The buffer is the same in every micro-batch, the ops are the current one's.
  struct OfVisit {
    BufferId gathered;
    OpId gather, end, reduce;
  };
  /// What belongs to one unit: its gradient before reduction, and whether this micro-batch has begun to write it.
  struct OfUnit {
    BufferId gradient;
    bool gradient_begun = false;
  };

  const FlatParameter& flat(UnitId unit) const { return build_.plan.units[unit.value]; }
  OfVisit& numbered(int number) { return of_visit_[static_cast<std::size_t>(number)]; }

  // ---- a micro-batch
  // -------------------------------------------------------------------------------------------------------

  void micro_batch(Segment::Name name, bool first) {
    build_.begin_segment(name);
    visit_all(first);
    build_.end_segment();
  }

  void visit_all(bool first) {
    first_ = first;
    next_gather_ = visits_.begin();
    for (OfUnit& unit : of_unit_) unit.gradient_begun = false;
    load_batch();
    if (first && gathers_) gather_root();
    issue_gathers_after(-1);
    for (const Visit& visit : visits_) run(visit);
  }

  /// When a micro-batch begins to compute, the one before has reduced its root, hence everything.
  void load_batch() {
    const std::int64_t rows = graph_[graph_.tokens].elements;
    const Wait reduced{Wait::On::reduced, root_unit.value};
    build_.op({.kind = OpKind::load_batch, .sizes = {.rows = rows}}, {},
              std::array{build_.words(build_.tokens, rows, DType::i32, true),
                         build_.words(build_.targets, rows, DType::i32, true)},
              {&reduced, !first_ && reduces_ ? 1U : 0U});
    if (first_)
      build_.op({.kind = OpKind::zero_fill, .sizes = {.rows = 2}}, {},
                std::array{build_.words(build_.local_loss, 2, DType::f64, true)});
  }

  void run(const Visit& visit) {
    if (visit.number >= 0 && gathers_) waits_.push_back(after(numbered(visit.number).gather));
    if (visit.phase == Phase::backward) begin_backward(visit);
    for (const Operator& op : std::span(graph_.operators).subspan(visit.first, visit.count)) compute(op, visit);
    end(visit);
  }

  void compute(const Operator& op, const Visit& visit) {
    inputs_.clear();
    outputs_.clear();
    const BufferId parameters = parameters_of(visit), gradients = gradients_of(visit.unit);
    for (const TensorId id : op.inputs) inputs_.push_back(tensors_.operand(id, parameters, gradients, false));
    for (const TensorId id : op.outputs) outputs_.push_back(tensors_.operand(id, parameters, gradients, true));
    issue_compute({.kind = op.kind,
                   .phase = op.phase,
                   .unit = op.unit,
                   .sizes = op.sizes,
                   .accumulate = op.accumulate || adds_to_earlier_micro_batches(op),
                   .scalar = op.scalar,
                   .stream = op.stream});
  }

  void issue_compute(const Builder::OpSpec& spec) {
    last_compute_ = build_.op(spec, inputs_, outputs_, waits_);
    waits_.clear();
  }

  /// Where nothing is reduced, gradients stay where they are computed, and later micro-batches add to them there.
  bool adds_to_earlier_micro_batches(const Operator& op) const {
    if (first_ || reduces_) return false;
    for (const TensorId id : op.outputs)
      if (id.valid() && graph_[id].role == Role::parameter_grad) return true;
    return false;
  }

  /// Around the end of a visit, the most urgent first: the next visit's gather, the reduction, gathers further ahead.
  void end(const Visit& visit) {
    if (visit.number >= 0) numbered(visit.number).end = last_compute_;
    if (visit.ends_backward) build_.mark(Wait::On::freed, visit.unit, last_compute_);
    if (visit.number >= 0) issue_next_gather_after(visit.number);
    if (visit.ends_backward && reduces_) reduce(visit);
    if (visit.number >= 0) issue_gathers_after(visit.number);
  }

  // ---- parameters
  // ----------------------------------------------------------------------------------------------------------

  BufferId parameters_of(const Visit& visit) {
    if (!gathers_) return flat(visit.unit).parameter_shard;
    return visit.number < 0 ? gathered_root_ : numbered(visit.number).gathered;
  }

  /// The root is gathered once a step and kept.
  void gather_root() {
    const Wait updated{Wait::On::updated, root_unit.value};
    waits_.push_back(after(gather(root_unit, Phase::forward, gathered_root_, {&updated, 1})));
  }

  /// The gather of the visit after visit `number`, unless it waits for a reduction.
  void issue_next_gather_after(int number) {
    const Visit* next = next_gather();
    if (next && next->number == number + 1 && rule(*next).after <= number && !rule(*next).after_reduce)
      issue_gather(*next);
  }

  /// All gathers not issued yet that wait for the end of visit `number` or earlier (−1: for nothing in this
  /// micro-batch).
  void issue_gathers_after(int number) {
    for (const Visit* next = next_gather(); next && rule(*next).after <= number; next = next_gather())
      issue_gather(*next);
  }

  const Visit* next_gather() {
    while (next_gather_ != visits_.end() && next_gather_->number < 0) ++next_gather_;
    return gathers_ && next_gather_ != visits_.end() ? &*next_gather_ : nullptr;
  }

  const GatherRule& rule(const Visit& visit) const { return rules_[static_cast<std::size_t>(visit.number)]; }

  void issue_gather(const Visit& visit) {
    OfVisit& of = numbered(visit.number);
    of.gather = gather(visit.unit, visit.phase, of.gathered, gather_waits(visit));
    ++next_gather_;
  }

  std::vector<Wait> gather_waits(const Visit& visit) {
    const GatherRule& r = rule(visit);
    if (r.after < 0) return {{Wait::On::updated, visit.unit.value}, {Wait::On::freed, freed_before(r.after).value}};
    std::vector<Wait> waits{after(numbered(r.after).end)};
    if (r.after_reduce && numbered(r.after).reduce.valid()) waits.push_back(after(numbered(r.after).reduce));
    return waits;
  }

  /// The unit that visit `number` < 0, counted from the end of the micro-batch before, belongs to; of its first visit
  /// if there are fewer.
  UnitId freed_before(int number) const {
    const int visit = std::max(0, static_cast<int>(rules_.size()) + number);
    return std::ranges::find(visits_, visit, &Visit::number)->unit;
  }

  OpId gather(UnitId unit, Phase phase, BufferId& whole, std::span<const Wait> waits) {
    const FlatParameter& f = flat(unit);
    if (!whole.valid())
      whole = build_.buffer(f.padded_elements * size_bytes(build_.plan.dtype), MemoryClass::gathered, unit);
    return build_.op({.kind = OpKind::all_gather,
                      .lane = Lane::gather,
                      .phase = phase,
                      .unit = unit,
                      .sizes = {.rows = f.padded_elements},
                      .group = GroupKind::shard},
                     std::array{build_.read(f.parameter_shard, f.shard_elements)},
                     std::array{build_.write(whole, f.padded_elements)}, waits);
  }

  // ---- gradients
  // -----------------------------------------------------------------------------------------------------------

  BufferId gradients_of(UnitId unit) const {
    return reduces_ ? of_unit_[unit.value].gradient : flat(unit).gradient_shard;
  }

  void begin_backward(const Visit& visit) {
    if (!reduces_) return;
    if (visit.number >= 0) wait_for_reduce_limit(visit.number - options_.reduce_limit);
    if (!std::exchange(of_unit_[visit.unit.value].gradient_begun, true)) begin_gradient(visit.unit);
  }

  /// A backward visit starts only after the reduction `reduce_limit` visits earlier.
  void wait_for_reduce_limit(int earlier) {
    if (earlier >= 0 && visit_phase(earlier) == Phase::backward) waits_.push_back(after(numbered(earlier).reduce));
  }

  Phase visit_phase(int number) const { return std::ranges::find(visits_, number, &Visit::number)->phase; }

  /// Padding is summed, squared and updated with the rest, so it must be zero.
  void begin_gradient(UnitId unit) {
    const FlatParameter& f = flat(unit);
    BufferId& gradient = of_unit_[unit.value].gradient;
    if (!gradient.valid())
      gradient =
          build_.buffer(f.padded_elements * size_bytes(build_.plan.dtype), MemoryClass::unsharded_gradients, unit);
    const std::int64_t padding = f.padded_elements - f.elements;
    if (padding == 0) return;
    inputs_.clear();
    outputs_ = {build_.write(gradient, padding, f.elements)};
    issue_compute({.kind = OpKind::zero_fill, .phase = Phase::backward, .unit = unit, .sizes = {.rows = padding}});
  }

  void reduce(const Visit& visit) {
    const FlatParameter& f = flat(visit.unit);
    const Wait end = after(last_compute_);
    const OpId id = build_.op({.kind = gathers_ ? OpKind::reduce_scatter : OpKind::all_reduce,
                               .lane = Lane::reduce,
                               .phase = Phase::backward,
                               .unit = visit.unit,
                               .sizes = {.rows = f.padded_elements},
                               .group = gathers_ ? GroupKind::shard : GroupKind::replica,
                               .accumulate = !first_},
                              std::array{build_.read(gradients_of(visit.unit), f.padded_elements)},
                              std::array{build_.write(f.gradient_shard, f.shard_elements)}, {&end, 1});
    build_.mark(Wait::On::reduced, visit.unit, id);
    if (visit.number >= 0) numbered(visit.number).reduce = id;
  }

  const Graph& graph_;
  const ScheduleOptions& options_;
  std::vector<Visit> visits_;
  std::vector<GatherRule> rules_;  // by visit number
  Builder build_;
  TensorMap tensors_;
  bool gathers_, reduces_;
  std::vector<OfVisit> of_visit_;  // by visit number
  std::vector<OfUnit> of_unit_;    // by unit
  BufferId gathered_root_;

  // Of the micro-batch being scheduled.
  bool first_ = true;
  std::vector<Visit>::const_iterator next_gather_;
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
