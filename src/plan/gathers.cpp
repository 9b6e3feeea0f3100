#include "plan/gathers.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace foreshard::plan {

using model::root_unit;

namespace {

std::vector<std::int64_t> whole_bytes(const Plan& plan) {
  std::vector<std::int64_t> bytes;
  for (const FlatParameter& unit : plan.units) bytes.push_back(unit.padded_elements * size_bytes(unit.gathered));
  return bytes;
}

}  // namespace

Gathers::Gathers(Builder& build, const std::vector<Visit>& visits, const ScheduleOptions& options,
                 std::vector<Around>& around)
    : build_(build),
      visits_(visits),
      options_(options),
      around_(around),
      first_rules_(gather_rules(visits, whole_bytes(build.plan), options, true)),
      later_rules_(gather_rules(visits, whole_bytes(build.plan), options, false)),
      of_visit_(around.size()),
      of_unit_(build.unit_count()),
      retained_(build.unit_count()),
      retain_(build.unit_count()) {}

void Gathers::begin_micro_batch(bool first) {
  first_ = first;
  next_ = visits_.begin();
  if (first && is_gathered(root_unit)) gather_root();
  issue_after(-1);
}

void Gathers::gather_root() {
  const Wait updated{Wait::On::updated, root_unit.value};
  const Visit root{.unit = root_unit};
  root_ = gather(root_unit, Phase::forward, source_of(root), buffer_of(root), {&updated, 1});
}

BufferId& Gathers::buffer_of(const Visit& visit) {
  const bool kept = visit.number < 0 || keep_of(options_, visit.unit) != Keep::visit;
  return kept ? of_unit_[visit.unit.value] : of_visit_[static_cast<std::size_t>(visit.number)];
}

BufferId Gathers::parameters_of(const Visit& visit) {
  return is_gathered(visit.unit) ? buffer_of(visit) : flat(visit.unit).parameter_shard;
}

void Gathers::add_waits(const Visit& visit, std::vector<Wait>& waits) {
  if (const OpId root = std::exchange(root_, {}); root.valid()) waits.push_back(after(root));
  if (visit.number >= 0 && around(visit.number).gather.valid()) waits.push_back(after(around(visit.number).gather));
}

void Gathers::retain(const Visit& visit) {
  const bool resharded =
      build_.plan.mesh.outer > 1 && visit.number >= 0 && keep_of(options_, visit.unit) == Keep::visit;
  if (!resharded || visit.phase != Phase::forward || visit.closes_unit) return;
  const FlatParameter& f = flat(visit.unit);
  const std::int64_t part = f.padded_elements / build_.plan.mesh.inner;
  BufferId& retained = retained_[visit.unit.value];
  if (!retained.valid()) retained = build_.buffer(part * size_bytes(f.gathered), MemoryClass::gathered, visit.unit);
  const Wait end = after(around(visit.number).end);
  around(visit.number).retain = retain_[visit.unit.value] =
      build_.op({.kind = OpKind::retain, .lane = Lane::copy, .unit = visit.unit, .sizes = {.rows = part}},
                std::array{Builder::words(buffer_of(visit), f.padded_elements, f.gathered, false)},
                std::array{Builder::words(retained, part, f.gathered, true)}, {&end, 1});
}

void Gathers::issue_next_after(int number) {
  const Visit* visit = next();
  if (visit && visit->number == number + 1 && rule(*visit).after <= number && !rule(*visit).after_reduce) issue(*visit);
}

void Gathers::issue_after(int number) {
  for (const Visit* visit = next(); visit && rule(*visit).after <= number; visit = next()) issue(*visit);
}

const Visit* Gathers::next() {
  const auto skipped = [&](const Visit& v) { return v.number < 0 || !is_gathered(v.unit) || !rule(v).needed; };
  while (next_ != visits_.end() && skipped(*next_)) ++next_;
  return next_ != visits_.end() ? &*next_ : nullptr;
}

void Gathers::issue(const Visit& visit) {
  around(visit.number).gather = gather(visit.unit, visit.phase, source_of(visit), buffer_of(visit), waits_of(visit));
  ++next_;
}

std::vector<Wait> Gathers::waits_of(const Visit& visit) {
  const GatherRule& r = rule(visit);
  const OpId written = source_of(visit).written;
  if (r.after < 0) return {{Wait::On::updated, visit.unit.value}, {Wait::On::freed, freed_before(r.after).value}};
  const Around& before = around(r.after);
  std::vector<Wait> waits{after(before.end)};
  if (before.retain.valid()) waits.push_back(after(before.retain));
  if (written.valid()) waits.push_back(after(written));
  if (r.after_reduce && before.reduce.valid()) waits.push_back(after(before.reduce));
  return waits;
}

/// The unit that visit `number` < 0, counted from the end of the micro-batch before, belongs to; of its first visit
/// if there are fewer.
UnitId Gathers::freed_before(int number) const {
  const int visit = std::max(0, static_cast<int>(around_.size()) + number);
  return std::ranges::find(visits_, visit, &Visit::number)->unit;
}

Gathers::Source Gathers::source_of(const Visit& visit) const {
  const FlatParameter& f = flat(visit.unit);
  const BufferId retained = retained_[visit.unit.value];
  if (visit.phase == Phase::backward && retained.valid())
    return {retained, f.padded_elements / build_.plan.mesh.inner, f.gathered, GroupKind::inner,
            retain_[visit.unit.value]};
  return {f.parameter_shard, f.shard_elements, build_.plan.dtype};
}

/// Shards of another type are cast straight into their place, and gathered where they lie.
OpId Gathers::gather(UnitId unit, Phase phase, const Source& source, BufferId& whole, std::span<const Wait> waits) {
  const FlatParameter& f = flat(unit);
  if (!whole.valid()) whole = build_.buffer(f.padded_elements * size_bytes(f.gathered), MemoryClass::gathered, unit);
  if (source.dtype == f.gathered) return all_gather(unit, phase, source, whole, waits);
  const OpId cast = build_.op({.kind = OpKind::cast_shard,
                               .lane = Lane::gather,
                               .phase = phase,
                               .unit = unit,
                               .sizes = {.rows = f.shard_elements}},
                              std::array{build_.read(source.shard, source.elements)},
                              std::array{Builder::words(whole, f.padded_elements, f.gathered, true)}, waits);
  if (build_.plan.mesh.shard_degree() == 1) return cast;
  return all_gather(unit, phase, {whole, f.padded_elements, f.gathered, source.group}, whole, {});
}

OpId Gathers::all_gather(UnitId unit, Phase phase, const Source& source, BufferId whole, std::span<const Wait> waits) {
  const FlatParameter& f = flat(unit);
  return build_.op({.kind = OpKind::all_gather,
                    .lane = Lane::gather,
                    .phase = phase,
                    .unit = unit,
                    .sizes = {.rows = f.padded_elements},
                    .group = source.group},
                   std::array{Builder::words(source.shard, source.elements, f.gathered, false)},
                   std::array{Builder::words(whole, f.padded_elements, f.gathered, true)}, waits);
}

}  // namespace foreshard::plan
