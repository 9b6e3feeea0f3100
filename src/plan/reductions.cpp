#include "plan/reductions.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace foreshard::plan {

Reductions::Reductions(Builder& build, const ScheduleOptions& options, std::vector<Around>& around)
    : build_(build),
      options_(options),
      around_(around),
      unsharded_(build.plan.mesh.world_size() > 1),
      of_unit_(build.unit_count()) {}

void Reductions::begin_micro_batch(bool first, bool last) {
  first_ = first;
  last_ = last;
  sums_.clear();
  last_of_lane_before_ = std::exchange(last_of_lane_, {});
  for (OfUnit& unit : of_unit_) unit.begun = false;
}

BufferId Reductions::gradients_of(UnitId unit) const {
  return unsharded_ ? of_unit_[unit.value].unsharded : flat(unit).gradient_shard;
}

void Reductions::add_waits_for_micro_batch_before(std::vector<Wait>& waits) const {
  if (!unsharded_ || first_) return;
  for (const UnitId unit : last_of_lane_before_) {
    const Wait reduced{Wait::On::reduced, unit.value};
    if (unit.valid() && std::ranges::find(waits, reduced) == waits.end()) waits.push_back(reduced);
  }
}

/// A backward visit starts only after the reduction `reduce_limit` visits earlier.
void Reductions::add_waits(const Visit& visit, std::vector<Wait>& waits) const {
  const int earlier = visit.number - options_.reduce_limit;
  if (earlier < 0) return;
  const OpId reduce = around_[static_cast<std::size_t>(earlier)].reduce;
  if (reduce.valid()) waits.push_back(after(reduce));
}

bool Reductions::begin_gradient(UnitId unit) {
  OfUnit& of = of_unit_[unit.value];
  if (!unsharded_ || std::exchange(of.begun, true)) return false;
  const FlatRange& trained = flat(unit).trainable;
  if (!of.unsharded.valid())
    of.unsharded =
        build_.buffer(trained.padded_elements * size_bytes(flat(unit).reduced), MemoryClass::unsharded_gradients, unit);
  return trained.padded_elements > trained.elements && !adds_to_gradients();
}

/// Who holds the same part of a unit.
GroupKind Reductions::holders_of(UnitId unit) const {
  return flat(unit).shard_degree == build_.plan.mesh.shard_degree() ? GroupKind::replica : GroupKind::world;
}

void Reductions::reduce(UnitId unit, const Visit& visit, OpId last_compute) {
  if (!unsharded_ || (no_sync() && !last_)) return;
  const OpId first_stage = shards(unit) ? scatter(unit, last_compute) : sum_replicas(unit, last_compute);
  const bool second_stage = shards(unit) && replicates() && (!sums_replicas_once() || last_);
  const OpId end = second_stage ? sum_replicas(unit, first_stage) : first_stage;
  if (visit.number >= 0 && unit == visit.unit) around_[static_cast<std::size_t>(visit.number)].reduce = first_stage;
  last_of_lane_[static_cast<std::size_t>(build_.plan.ops[end.value].lane)] = unit;
  build_.mark(Wait::On::reduced, unit, end);
}

/// Where the reduce-scatter leaves its sum: a buffer on the way to the replicas, or the gradient itself.
BufferId Reductions::scattered_to(UnitId unit) {
  const FlatParameter& f = flat(unit);
  if (!replicates() || sums_replicas_once()) return f.gradient_shard;
  BufferId& scattered = of_unit_[unit.value].scattered;
  if (!scattered.valid())
    scattered =
        build_.buffer(f.shard_of(f.trainable.padded_elements) * size_bytes(f.reduced), MemoryClass::gradients, unit);
  return scattered;
}

DType Reductions::type_of(UnitId unit, BufferId buffer) const {
  return buffer == flat(unit).gradient_shard ? build_.plan.dtype : flat(unit).reduced;
}

/// No more sums are on their way to the replicas than unsharded gradients to reduction.
OpId Reductions::scatter(UnitId unit, OpId before) {
  const FlatParameter& f = flat(unit);
  const std::int64_t whole = f.trainable.padded_elements;
  const BufferId shard = scattered_to(unit);
  const auto limit = static_cast<std::size_t>(options_.reduce_limit);
  std::vector<Wait> waits{after(before)};
  if (shard != f.gradient_shard && sums_.size() >= limit) waits.push_back(after(sums_[sums_.size() - limit]));
  return build_.op({.kind = OpKind::reduce_scatter,
                    .lane = Lane::reduce,
                    .phase = Phase::backward,
                    .unit = unit,
                    .sizes = {.rows = whole},
                    .group = GroupKind::shard,
                    .accumulate = shard == f.gradient_shard && adds_to_shard()},
                   std::array{Builder::words(gradients_of(unit), whole, f.reduced, false)},
                   std::array{Builder::words(shard, f.shard_of(whole), type_of(unit, shard), true)}, waits);
}

OpId Reductions::sum_replicas(UnitId unit, OpId before) {
  const FlatParameter& f = flat(unit);
  const std::int64_t shard = f.shard_of(f.trainable.padded_elements);
  const BufferId addend = shards(unit) ? scattered_to(unit) : gradients_of(unit);
  const Wait wait = after(before);
  sums_.push_back(build_.op({.kind = OpKind::all_reduce,
                             .lane = Lane::replicate,
                             .phase = Phase::backward,
                             .unit = unit,
                             .sizes = {.rows = shard},
                             .group = holders_of(unit),
                             .accumulate = addend != f.gradient_shard && adds_to_shard()},
                            std::array{Builder::words(addend, shard, type_of(unit, addend), false)},
                            std::array{build_.write(f.gradient_shard, shard)}, {&wait, 1}));
  return sums_.back();
}

}  // namespace foreshard::plan
