#include "plan/reductions.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace foreshard::plan {

Reductions::Reductions(Builder& build, const ScheduleOptions& options, std::vector<Around>& around)
    : build_(build),
      options_(options),
      around_(around),
      unsharded_(build.plan.mesh.world_size() > 1 || options.offload.gradients),
      of_unit_(build.unit_count()) {}

void Reductions::begin_micro_batch(bool first, bool last) {
  first_ = first;
  last_ = last;
  sums_.clear();
  offloads_.clear();
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

std::vector<FlatRange> Reductions::begin_gradient(UnitId unit) {
  OfUnit& of = of_unit_[unit.value];
  if (std::exchange(of.begun, true)) return {};
  const std::int64_t size_of_all = flat(unit).trainable.padded_elements * size_bytes(flat(unit).reduced);
  if (unsharded_ && !of.unsharded.valid())
    of.unsharded = build_.buffer(size_of_all, MemoryClass::unsharded_gradients, unit);
  return adds_to_gradients() ? std::vector<FlatRange>() : unwritten(unit);
}

/// Padding of what is not a buffer of its own has been zero since the beginning.
std::vector<FlatRange> Reductions::unwritten(UnitId unit) const {
  std::vector<FlatRange> ranges;
  const FlatRange& trained = flat(unit).trainable;
  const auto add = [&](std::int64_t first, std::int64_t elements) {
    const bool continues = !ranges.empty() && ranges.back().first + ranges.back().elements == first;
    if (elements == 0) return;
    if (continues)
      ranges.back().elements += elements;
    else
      ranges.push_back({.first = first, .elements = elements});
  };
  for (const FlatPiece& piece : flat(unit).pieces)
    if (piece.trainable && piece.idle) add(piece.offset, piece.elements);
  if (unsharded_) add(trained.elements, trained.padded_elements - trained.elements);
  return ranges;
}

/// Who holds the same part of a unit.
GroupKind Reductions::holders_of(UnitId unit) const {
  return flat(unit).shard_degree == build_.plan.mesh.shard_degree() ? GroupKind::replica : GroupKind::world;
}

void Reductions::reduce(UnitId unit, const Visit& visit, OpId last_compute) {
  if (!unsharded_ || (no_sync() && !last_)) return;
  offload_reduced();
  OpId first_stage, end = last_compute;
  if (shards(unit)) first_stage = end = scatter(unit, end);
  const bool alone = build_.plan.mesh.members(holders_of(unit)) == 1;
  if (!alone && (!shards(unit) || !sums_replicas_once() || last_)) end = sum_replicas(unit, end);
  mark_reduced(unit, end);
  if (offloads()) reduced_ = {unit, end};
  if (end == last_compute) end = offload_reduced();
  if (visit.number >= 0 && unit == visit.unit)
    around_[static_cast<std::size_t>(visit.number)].reduce = first_stage.valid() ? first_stage : end;
}

void Reductions::mark_reduced(UnitId unit, OpId end) {
  last_of_lane_[static_cast<std::size_t>(build_.plan.ops[end.value].lane)] = unit;
  build_.mark(Wait::On::reduced, unit, end);
}

/// Issued behind the next visit's end, when the reduction has ended or nearly so: it shall not hold up the fetches
/// behind it on its lane.
OpId Reductions::offload_reduced() {
  const auto [unit, end] = std::exchange(reduced_, {});
  return unit.valid() ? offload(unit, end) : OpId{};
}

OpId Reductions::offload(UnitId unit, OpId before) {
  const Wait wait = after(before);
  offloads_.push_back(build_.copy_shard({.kind = OpKind::offload,
                                         .phase = Phase::backward,
                                         .unit = unit,
                                         .accumulate = adds_to_shard() && !completes_sums(unit)},
                                        result_of(unit), flat(unit).gradient_shard, {&wait, 1}));
  mark_reduced(unit, offloads_.back());
  return offloads_.back();
}

/// Where the last reduction leaves its sum.
BufferId Reductions::result_of(UnitId unit) {
  if (!offloads()) return flat(unit).gradient_shard;
  if (build_.plan.mesh.world_size() == 1) return gradients_of(unit);
  BufferId& reduced = of_unit_[unit.value].reduced;
  if (!reduced.valid())
    reduced = build_.buffer(shard_elements(unit) * size_bytes(build_.plan.dtype), MemoryClass::gradients, unit);
  return reduced;
}

/// Where the reduce-scatter leaves its sum: a buffer on the way to the replicas, or the result itself.
BufferId Reductions::scattered_to(UnitId unit) {
  if (!replicates() || sums_replicas_once()) return result_of(unit);
  BufferId& scattered = of_unit_[unit.value].scattered;
  if (!scattered.valid())
    scattered = build_.buffer(shard_elements(unit) * size_bytes(flat(unit).reduced), MemoryClass::gradients, unit);
  return scattered;
}

DType Reductions::type_of(UnitId unit, BufferId buffer) {
  return buffer == result_of(unit) ? build_.plan.dtype : flat(unit).reduced;
}

/// No more results wait for their next stage than unsharded gradients for reduction.
std::vector<Wait> Reductions::limited(OpId before, const std::vector<OpId>& next_stage) const {
  const auto limit = static_cast<std::size_t>(options_.reduce_limit);
  std::vector<Wait> waits{after(before)};
  if (next_stage.size() >= limit) waits.push_back(after(next_stage[next_stage.size() - limit]));
  return waits;
}

OpId Reductions::scatter(UnitId unit, OpId before) {
  const FlatParameter& f = flat(unit);
  const std::int64_t whole = f.trainable.padded_elements;
  const BufferId shard = scattered_to(unit);
  const bool ends_here = shard == result_of(unit);
  std::vector<Wait> waits = limited(before, ends_here ? offloads_ : sums_);
  if (offloads() && completes_sums(unit)) waits.push_back(after(fetch_sums(unit, before)));
  return build_.op({.kind = OpKind::reduce_scatter,
                    .lane = Lane::reduce,
                    .phase = Phase::backward,
                    .unit = unit,
                    .sizes = {.rows = whole},
                    .group = GroupKind::shard,
                    .accumulate = ends_here && adds_to_result(unit)},
                   std::array{Builder::words(gradients_of(unit), whole, f.reduced, false)},
                   std::array{Builder::words(shard, f.shard_of(whole), type_of(unit, shard), true)}, waits);
}

/// What earlier micro-batches left in host memory.
OpId Reductions::fetch_sums(UnitId unit, OpId before) {
  return build_.copy_shard({.kind = OpKind::fetch, .phase = Phase::backward, .unit = unit}, flat(unit).gradient_shard,
                           result_of(unit), limited(before, offloads_));
}

OpId Reductions::sum_replicas(UnitId unit, OpId before) {
  const std::int64_t shard = shard_elements(unit);
  const BufferId addend = shards(unit) ? scattered_to(unit) : gradients_of(unit), result = result_of(unit);
  const std::vector<Wait> waits = limited(before, offloads_);
  sums_.push_back(build_.op({.kind = OpKind::all_reduce,
                             .lane = Lane::replicate,
                             .phase = Phase::backward,
                             .unit = unit,
                             .sizes = {.rows = shard},
                             .group = holders_of(unit),
                             .accumulate = addend != result && adds_to_result(unit)},
                            std::array{Builder::words(addend, shard, type_of(unit, addend), false)},
                            std::array{build_.write(result, shard)}, waits));
  return sums_.back();
}

}  // namespace foreshard::plan
