// Which numbers have which type, where they are cast, and what that changes in memory and on the wire.
#include <gtest/gtest.h>

#include "plan/query.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

ScheduleOptions with(const Precision& precision) {
  ScheduleOptions options;
  options.precision = precision;
  return options;
}
const Precision bf16{.parameters = DType::bf16};

const Segment& step_of(const Plan& plan) { return plan.segments.front(); }

std::int64_t bytes_of(const Plan& plan, MemoryClass memory, bool persistent) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.memory == memory && buffer.persistent == persistent) bytes += buffer.size_bytes;
  return bytes;
}

TEST(Precision, TheModelsOwnTypeChangesNothing) {
  const Precision own{.parameters = DType::f32, .reduction = DType::f32, .output = DType::f32};
  EXPECT_EQ(hash_of(tiny_plan(with(own))), hash_of(tiny_plan({})));
}

TEST(Precision, ShardsAreCastIntoTheirPlaceBeforeEachGather) {
  const Plan plan = tiny_plan(with(bf16));
  const auto casts = find(plan, step_of(plan), {OpKind::cast_shard}),
             gathers = find(plan, step_of(plan), {OpKind::all_gather});
  ASSERT_EQ(casts.size(), gathers.size());
  for (std::size_t i = 0; i < casts.size(); ++i) {
    const Op &cast = plan.ops[casts[i].value], &gather = plan.ops[gathers[i].value];
    EXPECT_EQ(cast.lane, Lane::gather);
    EXPECT_EQ(plan.outputs(cast)[0].buffer, plan.inputs(gather)[0].buffer);
    EXPECT_EQ(plan.inputs(gather)[0].buffer, plan.outputs(gather)[0].buffer) << "gathered in place";
    EXPECT_EQ(plan.inputs(cast)[0].dtype, DType::f32);
    EXPECT_EQ(plan.outputs(gather)[0].dtype, DType::bf16);
  }
}

TEST(Precision, GathersHalveReductionsDoNot) {
  const Plan full = tiny_plan({}), mixed = tiny_plan(with(bf16));
  const auto wire = [](const Plan& plan, OpKind kind) {
    double bytes = 0;
    for (const OpId id : find(plan, step_of(plan), {kind})) bytes += plan.ops[id.value].wire_bytes;
    return bytes;
  };
  EXPECT_NEAR(wire(mixed, OpKind::all_gather), wire(full, OpKind::all_gather) / 2,
              0.03 * wire(full, OpKind::all_gather))
      << "but for padding";
  EXPECT_NEAR(wire(mixed, OpKind::reduce_scatter), wire(full, OpKind::reduce_scatter),
              0.05 * wire(full, OpKind::reduce_scatter));
  const Plan low = tiny_plan(with({.parameters = DType::bf16, .reduction = DType::bf16}));
  EXPECT_EQ(wire(low, OpKind::reduce_scatter) * 2, wire(mixed, OpKind::reduce_scatter));
}

/// Replicas send each other halves of the gradient's type and get back sums that are not rounded: (R−1)/R of both.
TEST(Precision, ReplicasReceiveHalvesAndWholeSums) {
  ScheduleOptions options = with({.parameters = DType::bf16, .reduction = DType::bf16});
  const Plan plan = build_plan(tiny_graph(), {.replicas = 4}, options);
  for (const OpId id : find(plan, step_of(plan), {OpKind::all_reduce})) {
    const Op& op = plan.ops[id.value];
    EXPECT_EQ(op.wire_bytes, 3.0 / 4 * static_cast<double>(op.sizes.rows * (2 + 4)));
  }
}

/// K_full/F for all units stays; K_low for what is gathered (FSDP paper, section 4.4).
TEST(Precision, ShardsStayWholeGatheredParametersHalve) {
  const Plan full = tiny_plan({}), mixed = tiny_plan(with(bf16));
  std::int64_t gathered = 0;
  for (const FlatParameter& unit : mixed.units) {
    EXPECT_EQ(unit.shard_elements % 32, 0) << "64 bytes of bf16";
    gathered += (&unit == &mixed.units[0] ? 1 : 2) * 2 * unit.padded_elements;
  }
  EXPECT_EQ(bytes_of(mixed, MemoryClass::gathered, false), gathered);
  EXPECT_GE(bytes_of(mixed, MemoryClass::optimizer, true), bytes_of(full, MemoryClass::optimizer, true));
}

TEST(Precision, StatisticsAndLossKeepTheirTypes) {
  const Plan plan = tiny_plan(with(bf16));
  for (const OpId id : find(plan, step_of(plan), {OpKind::attention}))
    EXPECT_EQ(plan.outputs(plan.ops[id.value])[1].dtype, DType::f32);
  const Op& loss = plan.ops[find(plan, step_of(plan), {OpKind::cross_entropy}).front().value];
  EXPECT_EQ(plan.inputs(loss)[0].dtype, DType::bf16);
  EXPECT_EQ(plan.outputs(loss)[0].dtype, DType::f64);
}

TEST(Precision, CastsStandWhereUnitsHandOver) {
  EXPECT_TRUE(find(tiny_plan(with(bf16)), step_of(tiny_plan(with(bf16))), {OpKind::cast}).empty()) << "all alike";
  const Plan handed = tiny_plan(with({.parameters = DType::bf16, .output = DType::f32}));
  // Five units hand over in forward, five take; each cast has its gradient.
  EXPECT_EQ(find(handed, step_of(handed), {OpKind::cast}).size(), 20U);
  ScheduleOptions root_in_full = with(bf16);
  root_in_full.precision_of_unit = {{}};
  const Plan mixed = tiny_plan(root_in_full);
  EXPECT_EQ(find(mixed, step_of(mixed), {OpKind::cast}).size(), 4U) << "into the first block, into the head, and back";
}

TEST(Precision, OneRankCastsWithoutGathering) {
  const Plan plan = tiny_plan(with(bf16), 1, 1);
  EXPECT_TRUE(find(plan, step_of(plan), {OpKind::all_gather}).empty());
  EXPECT_EQ(find(plan, step_of(plan), {OpKind::cast_shard}).size(), 9U);
}

/// 1 + 2^-9 added over micro-batches would be lost in bf16.
TEST(Precision, GradientsThatAddUpDoSoInFull) {
  ScheduleOptions options = with({.parameters = DType::bf16, .reduction = DType::bf16});
  options.accumulation = Accumulation::no_sync;
  options.micro_batches = 3;
  for (const FlatParameter& unit : tiny_plan(options).units) EXPECT_EQ(unit.reduced, DType::f32);
}

}  // namespace
}  // namespace foreshard::plan
