#include "plan/reductions.hpp"

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
  for (OfUnit& unit : of_unit_) unit.begun = false;
}

BufferId Reductions::gradients_of(UnitId unit) const {
  return unsharded_ ? of_unit_[unit.value].unsharded : flat(unit).gradient_shard;
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
  const FlatParameter& f = flat(unit);
  if (!of.unsharded.valid())
    of.unsharded = build_.buffer(f.padded_elements * size_bytes(f.reduced), MemoryClass::unsharded_gradients, unit);
  return f.padded_elements > f.elements && !adds_to_gradients();
}

void Reductions::reduce(const Visit& visit, OpId last_compute) {
  if (!unsharded_ || (no_sync() && !last_)) return;
  const OpId first_stage = shards() ? scatter(visit.unit, last_compute) : sum_replicas(visit.unit, last_compute);
  const bool second_stage = shards() && replicates() && (!sums_replicas_once() || last_);
  const OpId end = second_stage ? sum_replicas(visit.unit, first_stage) : first_stage;
  if (visit.number >= 0) around_[static_cast<std::size_t>(visit.number)].reduce = first_stage;
  build_.mark(Wait::On::reduced, visit.unit, end);
}

/// Where the reduce-scatter leaves its sum: a buffer on the way to the replicas, or the gradient itself.
BufferId Reductions::scattered_to(UnitId unit) {
  const FlatParameter& f = flat(unit);
  if (!replicates() || sums_replicas_once()) return f.gradient_shard;
  BufferId& scattered = of_unit_[unit.value].scattered;
  if (!scattered.valid())
    scattered = build_.buffer(f.shard_elements * size_bytes(f.reduced), MemoryClass::gradients, unit);
  return scattered;
}

DType Reductions::type_of(UnitId unit, BufferId buffer) const {
  return buffer == flat(unit).gradient_shard ? build_.plan.dtype : flat(unit).reduced;
}

/// No more sums are on their way to the replicas than unsharded gradients to reduction.
OpId Reductions::scatter(UnitId unit, OpId before) {
  const FlatParameter& f = flat(unit);
  const BufferId shard = scattered_to(unit);
  const auto limit = static_cast<std::size_t>(options_.reduce_limit);
  std::vector<Wait> waits{after(before)};
  if (shard != f.gradient_shard && sums_.size() >= limit) waits.push_back(after(sums_[sums_.size() - limit]));
  return build_.op({.kind = OpKind::reduce_scatter,
                    .lane = Lane::reduce,
                    .phase = Phase::backward,
                    .unit = unit,
                    .sizes = {.rows = f.padded_elements},
                    .group = GroupKind::shard,
                    .accumulate = shard == f.gradient_shard && adds_to_shard()},
                   std::array{Builder::words(gradients_of(unit), f.padded_elements, f.reduced, false)},
                   std::array{Builder::words(shard, f.shard_elements, type_of(unit, shard), true)}, waits);
}

OpId Reductions::sum_replicas(UnitId unit, OpId before) {
  const FlatParameter& f = flat(unit);
  const BufferId addend = shards() ? scattered_to(unit) : gradients_of(unit);
  const Wait wait = after(before);
  sums_.push_back(build_.op({.kind = OpKind::all_reduce,
                             .lane = Lane::replicate,
                             .phase = Phase::backward,
                             .unit = unit,
                             .sizes = {.rows = f.shard_elements},
                             .group = GroupKind::replica,
                             .accumulate = addend != f.gradient_shard && adds_to_shard()},
                            std::array{Builder::words(addend, f.shard_elements, type_of(unit, addend), false)},
                            std::array{build_.write(f.gradient_shard, f.shard_elements)}, {&wait, 1}));
  return sums_.back();
}

}  // namespace foreshard::plan
