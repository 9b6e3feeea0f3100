// What backward computes again, and what memory and traffic that changes.
#include <gtest/gtest.h>

#include <map>

#include "plan/query.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

using Mode = Recompute::Mode;

ScheduleOptions with(Recompute recompute) {
  ScheduleOptions options;
  options.recompute = std::move(recompute);
  return options;
}

/// Counts of forward kinds that run in backward.
std::map<OpKind, int> repeated(const Plan& plan) {
  std::map<OpKind, int> counts;
  for (const Op& op : plan.ops)
    if (op.phase == Phase::backward && op.lane == Lane::compute && op.kind <= OpKind::cross_entropy) ++counts[op.kind];
  if (const auto fused = find(plan, plan.segments.front(), {OpKind::add_layer_norm, {}, false, Phase::backward}).size())
    counts[OpKind::add_layer_norm] = static_cast<int>(fused);
  return counts;
}

TEST(Recompute, NoneRepeatsNothing) { EXPECT_TRUE(repeated(tiny_plan({})).empty()); }

TEST(Recompute, SelectiveRepeatsTheListedOperatorsOnly) {
  using Counts = std::map<OpKind, int>;
  EXPECT_EQ(repeated(tiny_plan(with({.mode = Mode::selective}))), (Counts{{OpKind::attention, 4}}));
  EXPECT_EQ(repeated(tiny_plan(with({.mode = Mode::selective, .kinds = {OpKind::gelu, OpKind::attention}}))),
            (Counts{{OpKind::attention, 4}, {OpKind::gelu, 4}}));
}

/// Of a block only the last projection and the sum behind it are not needed again.
TEST(Recompute, FullRepeatsAllThatBackwardOfABlockReads) {
  const std::map<OpKind, int> expected{{OpKind::layer_norm, 4},
                                       {OpKind::linear, 12},
                                       {OpKind::attention, 4},
                                       {OpKind::gelu, 4},
                                       {OpKind::add_layer_norm, 4}};
  EXPECT_EQ(repeated(tiny_plan(with({.mode = Mode::full}))), expected);
}

TEST(Recompute, EveryNthBlockBeginsWithTheFirst) {
  const Plan plan = tiny_plan(with({.mode = Mode::full, .every = 3}));
  for (std::uint32_t unit = 1; unit <= 4; ++unit) {
    const auto again = find(plan, plan.segments.front(), {OpKind::attention, {unit}, false, Phase::backward});
    EXPECT_EQ(again.size(), unit == 1 || unit == 4 ? 1U : 0U) << "unit " << unit;
  }
}

TEST(Recompute, AddsNoGather) {
  const Plan none = tiny_plan({}), full = tiny_plan(with({.mode = Mode::full}));
  for (const OpKind kind : {OpKind::all_gather, OpKind::reduce_scatter})
    EXPECT_EQ(find(none, none.segments.front(), {kind}).size(), find(full, full.segments.front(), {kind}).size());
}

/// Activations that live between a block's forward and its backward, as floats a row: x, two layer norms (y, mean,
/// rstd), qkv, attention's y and its log-sum-exp a head, the sum, two of the hidden layer; with recomputation only x.
TEST(Recompute, FullKeepsOneActivationABlock) {
  constexpr std::int64_t width = 16, heads = 2, rows = 16, blocks = 24;
  const auto arena = [&](Recompute r) { return tiny_plan(with(std::move(r)), 1, 1, blocks).arena_bytes; };
  const std::int64_t saved_a_block = 4 * rows * (2 * (width + 2) + 3 * width + width + heads + width + 8 * width);
  const std::int64_t saved = arena({}) - arena({.mode = Mode::full});
  EXPECT_NEAR(static_cast<double>(saved), static_cast<double>((blocks - 1) * saved_a_block),
              0.02 * static_cast<double>(blocks * saved_a_block));
}

}  // namespace
}  // namespace foreshard::plan
