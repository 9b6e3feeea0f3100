#include "plan/schedule_update.hpp"

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/exact_sum.hpp"
#include "plan/update_copies.hpp"

namespace foreshard::plan {
namespace {

/// Words of one shard's norm: an exact sum, or one largest magnitude.
int shard_words(const Builder& build) { return std::isinf(build.plan.norm_power) ? 1 : exact_sum_words; }

OpId begin_norm(Builder& build) {
  const int words = shard_words(build);
  return build.op({.kind = OpKind::zero_fill, .phase = Phase::update, .sizes = {.rows = words}}, {},
                  std::array{build.words(build.shard_norm, words, DType::i64, true)});
}

/// Adds what this rank holds of a unit's gradient.
OpId grad_norm(Builder& build, UnitId unit, std::vector<Wait> waits) {
  const FlatParameter& flat = build.plan.units[unit.value];
  const std::int64_t n = flat.shard_of(flat.trainable.padded_elements);
  waits.push_back({Wait::On::reduced, unit.value});
  return build.op({.kind = OpKind::grad_norm,
                   .phase = Phase::update,
                   .unit = unit,
                   .sizes = {.rows = n},
                   .scalar = build.plan.norm_power},
                  std::array{build.read(flat.gradient_shard, n)},
                  std::array{build.words(build.shard_norm, shard_words(build), DType::i64, true)}, waits);
}

OpId sum_norm(Builder& build, OpId last_norm) {
  const Wait wait = after(last_norm);
  return build.op({.kind = OpKind::sum_norm,
                   .lane = Lane::replicate,
                   .phase = Phase::update,
                   .sizes = {.rows = exact_sum_words},
                   .group = GroupKind::shard},
                  std::array{build.words(build.plan.norm, exact_sum_words, DType::i64, false)},
                  std::array{build.words(build.plan.norm, exact_sum_words, DType::i64, true)}, {&wait, 1});
}

/// A maximum is not a sum: each shard's is gathered, and every rank takes the largest.
OpId gather_norm(Builder& build, OpId last_norm) {
  const Wait wait = after(last_norm);
  const int words = build.plan.norm_words();
  return build.op({.kind = OpKind::gather_norm,
                   .lane = Lane::replicate,
                   .phase = Phase::update,
                   .sizes = {.rows = words},
                   .group = GroupKind::shard},
                  std::array{build.words(build.shard_norm, 1, DType::i64, false)},
                  std::array{build.words(build.plan.norm, words, DType::i64, true)}, {&wait, 1});
}

OpId join_norms(Builder& build, OpId last_norm) {
  return std::isinf(build.plan.norm_power) ? gather_norm(build, last_norm) : sum_norm(build, last_norm);
}

OpId update(Builder& build, OpKind kind, const FlatParameter& flat, UnitId unit, std::span<const Wait> waits) {
  const std::int64_t n = flat.shard_of(flat.trainable.padded_elements);
  const std::array outputs{build.write(flat.parameter_shard, n), build.write(flat.first_moment, n),
                           build.write(flat.second_moment, n)};
  return build.op({.kind = kind, .phase = Phase::update, .unit = unit, .sizes = {.rows = n}},
                  std::array{build.read(flat.gradient_shard, n),
                             build.words(build.plan.norm, build.plan.norm_words(), DType::i64, false),
                             build.words(build.plan.loss, 2, DType::f64, false)},
                  std::span(outputs).first(1 + static_cast<std::size_t>(model::moment_count(kind))), waits);
}

/// Units with a gradient in this plan, in the order in which reductions end.
std::vector<UnitId> trained_units(const Builder& build) {
  std::vector<UnitId> units;
  for (std::uint32_t unit = build.unit_count(); unit-- > 0;)
    if (build.plan.units[unit].has_gradient()) units.push_back({unit});
  return units;
}

/// The norm over all ranks. What ranks share out is joined over the shard group; to a sum, what all of them hold is
/// added afterwards, so that it counts once. Returns the ops to wait for.
std::vector<Wait> norm(Builder& build, OpId begin) {
  const int shard_degree = build.plan.mesh.shard_degree();
  const bool is_sum = !std::isinf(build.plan.norm_power);
  std::vector<UnitId> before, afterwards;
  for (const UnitId unit : trained_units(build))
    (is_sum && build.plan.units[unit.value].shard_degree < shard_degree ? afterwards : before).push_back(unit);
  OpId last = begin;
  for (const UnitId unit : before) last = grad_norm(build, unit, {});
  if (shard_degree == 1) return {};
  const std::vector<Wait> joined{after(join_norms(build, last))};
  for (const UnitId unit : afterwards) grad_norm(build, unit, joined);
  return joined;
}

}  // namespace

OpId sum_loss(Builder& build, OpId after_loss) {
  const Wait wait = after(after_loss);
  return build.op({.kind = OpKind::sum_loss,
                   .lane = Lane::replicate,
                   .phase = Phase::update,
                   .sizes = {.rows = 2},
                   .group = GroupKind::world},
                  std::array{build.words(build.local_loss, 2, DType::f64, false)},
                  std::array{build.words(build.plan.loss, 2, DType::f64, true)}, {&wait, 1});
}

void schedule_update(Builder& build, OpKind kind) {
  build.begin_segment(Segment::Name::update);
  const std::vector<UnitId> units = trained_units(build);
  UpdateCopies copies(build, {units.rbegin(), units.rend()});
  const OpId begin = begin_norm(build);
  std::vector<Wait> waits{after(sum_loss(build, begin))};
  for (const Wait& wait : norm(build, begin)) waits.push_back(wait);
  for (auto unit = units.rbegin(); unit != units.rend(); ++unit) {
    copies.add_waits(*unit, waits);
    const OpId updated = update(build, kind, copies.at(*unit), *unit, std::exchange(waits, {}));
    build.mark(Wait::On::updated, *unit, copies.write_back(*unit, updated));
    copies.fetch_ahead();
  }
  build.end_segment();
}

}  // namespace foreshard::plan
