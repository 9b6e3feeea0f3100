#include "plan/gathers.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.hpp"

namespace foreshard::plan {

using model::root_unit;

namespace {

/// Of what is gathered or fetched.
std::vector<std::int64_t> whole_bytes(const Plan& plan, const Offload& offload) {
  std::vector<std::int64_t> bytes;
  for (const FlatParameter& unit : plan.units) bytes.push_back(unit.whole_bytes(plan.master, offload.parameters));
  return bytes;
}

}  // namespace

Gathers::Gathers(Builder& build, const std::vector<Visit>& visits, const ScheduleOptions& options,
                 std::vector<Around>& around)
    : build_(build),
      visits_(visits),
      options_(options),
      around_(around),
      unit_bytes_(whole_bytes(build.plan, options.offload)),
      first_rules_(gather_rules(visits, unit_bytes_, options, true)),
      later_rules_(gather_rules(visits, unit_bytes_, options, false)),
      of_visit_(around.size()),
      of_unit_(build.unit_count()),
      retained_(build.unit_count()),
      staging_(around.size() + build.unit_count()),
      retain_(build.unit_count()) {}

void Gathers::begin_micro_batch(bool first) {
  first_ = first;
  next_ = next_fetch_ = visits_.begin();
  fetch_.assign(staging_.size(), {});
  if (first) gather_standing();
  fetch_after(-1);
  issue_after(-1);
}

/// The root and units without visits of their own.
void Gathers::gather_standing() {
  for (std::uint32_t unit = 0; unit < build_.unit_count(); ++unit) {
    const bool visited = std::ranges::any_of(
        visits_, [&](const Visit& visit) { return visit.number >= 0 && visit.unit == UnitId{unit}; });
    if (visited || !is_gathered({unit})) continue;
    const Visit standing{.unit = {unit}};
    std::vector<Wait> waits{{Wait::On::updated, unit}};
    if (is_staged(standing)) fetch(standing, waits);
    const Source source = source_of(standing);
    if (source.written.valid()) waits.push_back(after(source.written));
    const OpId gathered = gather({unit}, Phase::forward, source, of_unit_[unit], waits);
    standing_[static_cast<std::size_t>(build_.plan.ops[gathered.value].lane)] = gathered;
  }
}

BufferId& Gathers::buffer_of(const Visit& visit) {
  const bool kept = visit.number < 0 || keep_of(options_, visit.unit) != Keep::visit;
  return kept ? of_unit_[visit.unit.value] : of_visit_[static_cast<std::size_t>(visit.number)];
}

BufferId Gathers::parameters_of(const Visit& visit, UnitId unit) {
  if (!is_gathered(unit)) return flat(unit).parameter_shard;
  if (unit == visit.unit) return buffer_of(visit);
  FORESHARD_EXPECT(of_unit_[unit.value].valid(), "a visit reads parameters that are not gathered then");
  return of_unit_[unit.value];
}

Gathers::Place Gathers::packed_of(const Visit& visit, UnitId unit) {
  const FlatParameter& f = flat(unit);
  if (moves_packed(unit)) return {parameters_of(visit, unit), f.packed_at_bytes(1, f.gathered)};
  return {f.parameter_shard, f.packed_at_bytes(f.shard_degree, build_.plan.master)};
}

Operand Gathers::packed(UnitId unit, BufferId buffer, int parts, DType type, std::int64_t words, bool written) const {
  return {buffer, flat(unit).packed_at_bytes(parts, type), words * model::packed_word_bytes, DType::i32, written};
}

void Gathers::add_waits(const Visit& visit, std::vector<Wait>& waits) {
  for (const OpId standing : std::exchange(standing_, {}))
    if (standing.valid()) waits.push_back(after(standing));
  if (visit.number >= 0 && around(visit.number).gather.valid()) waits.push_back(after(around(visit.number).gather));
}

bool Gathers::is_resharded(const Visit& visit) const {
  return build_.plan.mesh.outer > 1 && visit.number >= 0 && keep_of(options_, visit.unit) == Keep::visit &&
         flat(visit.unit).shard_degree > 1;
}

void Gathers::retain(const Visit& visit) {
  const FlatParameter& f = flat(visit.unit);
  if (!is_resharded(visit) || visit.phase != Phase::forward || visit.closes_unit) return;
  const int inner = build_.plan.mesh.inner;
  BufferId& retained = retained_[visit.unit.value];
  if (!retained.valid()) retained = build_.buffer(f.part_bytes(inner, f.gathered), MemoryClass::gathered, visit.unit);
  const Wait end = after(around(visit.number).end);
  for (const FlatRange& range : f.ranges()) {
    const std::int64_t whole = range.padded_elements, part = whole / inner;
    around(visit.number).retain = retain_[visit.unit.value] =
        build_.op({.kind = OpKind::retain, .lane = Lane::copy, .unit = visit.unit, .sizes = {.rows = part}},
                  std::array{Builder::words(buffer_of(visit), whole, f.gathered, false, range.first)},
                  std::array{Builder::words(retained, part, f.gathered, true, range.first / inner)}, {&end, 1});
  }
  if (moves_packed(visit.unit)) retain_packed(visit, retained);
}

void Gathers::retain_packed(const Visit& visit, BufferId retained) {
  const FlatParameter& f = flat(visit.unit);
  const int inner = build_.plan.mesh.inner;
  const std::int64_t words = f.packed.padded_elements;
  const Wait end = after(around(visit.number).end);
  around(visit.number).retain = retain_[visit.unit.value] =
      build_.op({.kind = OpKind::retain, .lane = Lane::copy, .unit = visit.unit, .sizes = {.rows = words / inner}},
                std::array{packed(visit.unit, buffer_of(visit), 1, f.gathered, words, false)},
                std::array{packed(visit.unit, retained, inner, f.gathered, words / inner, true)}, {&end, 1});
}

void Gathers::fetch_after(int number) {
  for (const Visit* visit = next(next_fetch_, true); visit && rule(*visit).after <= number + 1;
       visit = next(next_fetch_, true)) {
    fetch(*visit, end_of(rule(*visit).after - 1, visit->unit));
    ++next_fetch_;
  }
}

void Gathers::issue_next_after(int number) {
  const Visit* visit = next(next_, false);
  if (visit && visit->number == number + 1 && rule(*visit).after <= number && !rule(*visit).after_reduce) issue(*visit);
}

void Gathers::issue_after(int number) {
  for (const Visit* visit = next(next_, false); visit && rule(*visit).after <= number; visit = next(next_, false))
    issue(*visit);
}

const Visit* Gathers::next(Position& position, bool staged_only) const {
  const auto skipped = [&](const Visit& v) {
    return v.number < 0 || !rule(v).needed || (staged_only && !is_staged(v));
  };
  while (position != visits_.end() && skipped(*position)) ++position;
  return position != visits_.end() ? &*position : nullptr;
}

void Gathers::fetch(const Visit& visit, std::span<const Wait> waits) {
  const FlatParameter& f = flat(visit.unit);
  BufferId& staging = staging_[slot(visit)];
  if (!staging.valid())
    staging = build_.buffer(f.part_bytes(f.shard_degree, build_.plan.master), MemoryClass::parameters, visit.unit);
  fetch_[slot(visit)] = build_.copy_shard({.kind = OpKind::fetch, .phase = visit.phase, .unit = visit.unit},
                                          f.parameter_shard, staging, waits);
}

void Gathers::issue(const Visit& visit) {
  around(visit.number).gather = gather(visit.unit, visit.phase, source_of(visit), buffer_of(visit), waits_of(visit));
  ++next_;
}

std::vector<Wait> Gathers::waits_of(const Visit& visit) {
  const GatherRule& r = rule(visit);
  const Around before = r.after < 0 ? Around{} : around(r.after);
  std::vector<Wait> waits = end_of(r.after, visit.unit);
  for (const OpId op : {before.retain, source_of(visit).written, r.after_reduce ? before.reduce : OpId{}})
    if (op.valid()) waits.push_back(after(op));
  return waits;
}

/// The end of visit `number`; if that is one of the micro-batch before, the update of `unit` too.
std::vector<Wait> Gathers::end_of(int number, UnitId unit) {
  if (number >= 0) return {after(around(number).end)};
  return {{Wait::On::updated, unit.value}, {Wait::On::freed, freed_before(number).value}};
}

/// The unit that visit `number` < 0, counted from the end of the micro-batch before, belongs to; of its first visit
/// if there are fewer.
UnitId Gathers::freed_before(int number) const {
  const int visit = std::max(0, static_cast<int>(around_.size()) + number);
  return std::ranges::find(visits_, visit, &Visit::number)->unit;
}

Gathers::Source Gathers::source_of(const Visit& visit) {
  if (regathers(visit))
    return {retained_[visit.unit.value], flat(visit.unit).gathered, GroupKind::inner, retain_[visit.unit.value]};
  if (is_staged(visit)) return {staging_[slot(visit)], build_.plan.master, GroupKind::shard, fetch_[slot(visit)]};
  return {flat(visit.unit).parameter_shard, build_.plan.master};
}

/// What is whole already is fetched from host memory; the rest range by range. The op after which all of the unit is
/// there.
OpId Gathers::gather(UnitId unit, Phase phase, const Source& source, BufferId& whole, std::span<const Wait> waits) {
  const FlatParameter& f = flat(unit);
  if (!whole.valid()) whole = build_.buffer(unit_bytes_[unit.value], MemoryClass::gathered, unit);
  if (is_whole(unit))
    return build_.copy_shard({.kind = OpKind::fetch, .phase = phase, .unit = unit}, source.parts, whole, waits);
  OpId last;
  for (const FlatRange& range : f.ranges()) last = gather(unit, phase, range, source, whole, waits);
  return moves_packed(unit) ? gather_packed(unit, phase, source, whole, waits) : last;
}

/// Words are gathered as they are; those of a shard that is all of them are copied from their staging buffer.
OpId Gathers::gather_packed(UnitId unit, Phase phase, const Source& source, BufferId whole,
                            std::span<const Wait> waits) {
  const FlatParameter& f = flat(unit);
  const int parts = f.shard_degree == 1 ? 1 : build_.plan.mesh.members(source.group);
  const std::int64_t words = f.packed.padded_elements;
  return build_.op({.kind = parts == 1 ? OpKind::cast_shard : OpKind::all_gather,
                    .lane = Lane::gather,
                    .phase = phase,
                    .unit = unit,
                    .sizes = {.rows = words},
                    .group = parts == 1 ? GroupKind::none : source.group},
                   std::array{packed(unit, source.parts, parts, source.dtype, words / parts, false)},
                   std::array{packed(unit, whole, 1, f.gathered, words, true)}, waits);
}

/// Shards of another type are cast straight into their place, and gathered where they lie.
OpId Gathers::gather(UnitId unit, Phase phase, const FlatRange& range, const Source& source, BufferId whole,
                     std::span<const Wait> waits) {
  const FlatParameter& f = flat(unit);
  const int members = build_.plan.mesh.members(source.group);
  const Builder::OpSpec spec{.kind = OpKind::all_gather,
                             .lane = Lane::gather,
                             .phase = phase,
                             .unit = unit,
                             .sizes = {.rows = range.padded_elements},
                             .group = source.group};
  const Operand to = Builder::words(whole, range.padded_elements, f.gathered, true, range.first);
  if (source.dtype == f.gathered) {
    const Operand from =
        Builder::words(source.parts, range.padded_elements / members, f.gathered, false, range.first / members);
    return build_.op(spec, std::array{from}, std::array{to}, waits);
  }
  const std::int64_t shard = f.shard_of(range.padded_elements);
  const OpId cast = build_.op(
      {.kind = OpKind::cast_shard, .lane = Lane::gather, .phase = phase, .unit = unit, .sizes = {.rows = shard}},
      std::array{build_.read(source.parts, shard, f.shard_of(range.first))}, std::array{to}, waits);
  if (f.shard_degree == 1) return cast;
  return build_.op(spec, std::array{Builder::words(whole, range.padded_elements, f.gathered, false, range.first)},
                   std::array{to});
}

}  // namespace foreshard::plan
