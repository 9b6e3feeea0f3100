#include "plan/schedule_update.hpp"

#include <array>
#include <cmath>

#include "base/exact_sum.hpp"

namespace foreshard::plan {
namespace {

/// Words of one shard's norm: an exact sum, or one largest magnitude.
int shard_words(const Builder& build) { return std::isinf(build.plan.norm_power) ? 1 : exact_sum_words; }

OpId begin_norm(Builder& build) {
  const int words = shard_words(build);
  return build.op({.kind = OpKind::zero_fill, .phase = Phase::update, .sizes = {.rows = words}}, {},
                  std::array{build.words(build.shard_norm, words, DType::i64, true)});
}

OpId grad_norm(Builder& build, UnitId unit) {
  const FlatParameter& flat = build.plan.units[unit.value];
  const Wait reduced{Wait::On::reduced, unit.value};
  return build.op({.kind = OpKind::grad_norm,
                   .phase = Phase::update,
                   .unit = unit,
                   .sizes = {.rows = flat.shard_elements},
                   .scalar = build.plan.norm_power},
                  std::array{build.read(flat.gradient_shard, flat.shard_elements)},
                  std::array{build.words(build.shard_norm, shard_words(build), DType::i64, true)},
                  {&reduced, build.plan.mesh.world_size() > 1 ? 1U : 0U});
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

OpId update(Builder& build, OpKind kind, UnitId unit, std::span<const Wait> waits) {
  const FlatParameter& flat = build.plan.units[unit.value];
  const std::int64_t n = flat.shard_elements;
  const std::array outputs{build.write(flat.parameter_shard, n), build.write(flat.first_moment, n),
                           build.write(flat.second_moment, n)};
  return build.op({.kind = kind, .phase = Phase::update, .unit = unit, .sizes = {.rows = n}},
                  std::array{build.read(flat.gradient_shard, n),
                             build.words(build.plan.norm, build.plan.norm_words(), DType::i64, false),
                             build.words(build.plan.loss, 2, DType::f64, false)},
                  std::span(outputs).first(1 + static_cast<std::size_t>(model::moment_count(kind))), waits);
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
  OpId last_norm = begin_norm(build);
  std::vector<Wait> sums{after(sum_loss(build, last_norm))};
  for (std::uint32_t unit = build.unit_count(); unit-- > 1;) last_norm = grad_norm(build, {unit});
  last_norm = grad_norm(build, model::root_unit);
  if (build.plan.mesh.shard_degree() > 1) sums.push_back(after(join_norms(build, last_norm)));
  for (std::uint32_t unit = 0; unit < build.unit_count(); ++unit) {
    build.mark(Wait::On::updated, {unit}, update(build, kind, {unit}, sums));
    sums.clear();
  }
  build.end_segment();
}

}  // namespace foreshard::plan
