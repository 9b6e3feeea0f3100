#include "plan/update_copies.hpp"

#include <algorithm>
#include <array>

namespace foreshard::plan {
namespace {

/// One is updated while the next one's copies go on.
constexpr std::size_t units_in_flight = 2;

}  // namespace

UpdateCopies::UpdateCopies(Builder& build, std::vector<UnitId> units)
    : build_(build),
      units_(std::move(units)),
      at_(build.plan.units),
      copies_(build.unit_count()),
      fetched_(build.unit_count()),
      updated_(build.unit_count()) {
  for (const UnitId unit : units_)
    if (!works_in_host(at_[unit.value])) stage(unit);
  for (std::size_t i = 0; i < units_in_flight; ++i) fetch_ahead();
}

bool UpdateCopies::in_host(BufferId buffer) const { return build_.plan.buffers[buffer.value].space == Space::host; }

bool UpdateCopies::works_in_host(const FlatParameter& unit) const {
  const std::array shards{unit.parameter_shard, unit.gradient_shard, unit.first_moment, unit.second_moment};
  return std::ranges::all_of(shards, [&](BufferId shard) { return !shard.valid() || in_host(shard); });
}

void UpdateCopies::stage(UnitId unit) {
  FlatParameter& at = at_[unit.value];
  stage(unit, at.gradient_shard, false);
  stage(unit, at.parameter_shard, true);
  stage(unit, at.first_moment, true);
  stage(unit, at.second_moment, true);
}

void UpdateCopies::stage(UnitId unit, BufferId& home, bool written) {
  if (!home.valid() || !in_host(home)) return;
  const Buffer shard = build_.plan.buffers[home.value];
  const BufferId staging = build_.buffer(shard.size_bytes, shard.memory, unit);
  copies_[unit.value].push_back({home, staging, written});
  home = staging;
}

/// When a unit's staging buffers may come to life: after the last backward, or after those of the unit two before.
Wait UpdateCopies::begin_of(std::size_t index) const {
  if (index < units_in_flight) return {Wait::On::freed, model::root_unit.value};
  return after(updated_[units_[index - units_in_flight].value]);
}

void UpdateCopies::fetch_ahead() {
  if (next_ == units_.size()) return;
  const UnitId unit = units_[next_];
  const Wait wait = begin_of(next_);
  for (const Copy& copy : copies_[unit.value])
    fetched_[unit.value] = build_.copy_shard({.kind = OpKind::fetch, .phase = Phase::update, .unit = unit}, copy.home,
                                             copy.staging, {&wait, 1});
  ++next_;
}

void UpdateCopies::add_waits(UnitId unit, std::vector<Wait>& waits) const {
  if (fetched_[unit.value].valid()) waits.push_back(after(fetched_[unit.value]));
}

OpId UpdateCopies::write_back(UnitId unit, OpId update) {
  const Wait wait = after(update);
  OpId last = updated_[unit.value] = update;
  for (const Copy& copy : copies_[unit.value])
    if (copy.written)
      last = build_.copy_shard({.kind = OpKind::offload, .phase = Phase::update, .unit = unit}, copy.staging, copy.home,
                               {&wait, 1});
  return last;
}

}  // namespace foreshard::plan
