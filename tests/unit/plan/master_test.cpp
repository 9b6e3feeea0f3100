// Parameters kept in bf16: no cast before a gather, half the bytes of a shard, all else as with masters in f32.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "plan/query.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

ScheduleOptions mixed() {
  ScheduleOptions options;
  options.precision = {.parameters = DType::bf16};
  return options;
}
ScheduleOptions kept_in_bf16() {
  ScheduleOptions options = mixed();
  options.master = DType::bf16;
  return options;
}

std::int64_t persistent_bytes(const Plan& plan, MemoryClass memory) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers)
    if (buffer.memory == memory && buffer.persistent) bytes += buffer.size_bytes;
  return bytes;
}

std::int64_t padded_shards(const Plan& plan) {
  std::int64_t elements = 0;
  for (const FlatParameter& unit : plan.units) elements += unit.shard_elements;
  return elements;
}

std::vector<OpId> in_step(const Plan& plan, OpKind kind) { return find(plan, plan.segments.front(), {kind}); }

/// 2 bytes for a parameter, 4 for its gradient, 8 for its moments; padded to 32 elements a shard either way.
TEST(Master, InBf16TakesTwoBytesOfFourteen) {
  for (const int shard_degree : {1, 2, 8}) {
    const Plan half = tiny_plan(kept_in_bf16(), shard_degree), full = tiny_plan(mixed(), shard_degree);
    const std::int64_t elements = padded_shards(half);
    EXPECT_EQ(elements, padded_shards(full));
    EXPECT_EQ(persistent_bytes(half, MemoryClass::parameters), 2 * elements);
    EXPECT_EQ(persistent_bytes(full, MemoryClass::parameters), 4 * elements);
    for (const Plan* plan : {&half, &full}) {
      EXPECT_EQ(persistent_bytes(*plan, MemoryClass::gradients), 4 * elements);
      EXPECT_EQ(persistent_bytes(*plan, MemoryClass::optimizer), 8 * elements);
    }
    EXPECT_NE(hash_of(half), hash_of(full));
  }
}

TEST(Master, InBf16IsGatheredFromTheShardWithoutACast) {
  const Plan half = tiny_plan(kept_in_bf16()), full = tiny_plan(mixed());
  EXPECT_TRUE(in_step(half, OpKind::cast_shard).empty());
  const auto gathers = in_step(half, OpKind::all_gather), others = in_step(full, OpKind::all_gather);
  ASSERT_EQ(gathers.size(), others.size());
  for (std::size_t i = 0; i < gathers.size(); ++i) {
    const Op &op = half.ops[gathers[i].value], &other = full.ops[others[i].value];
    const Operand& shard = half.inputs(op)[0];
    EXPECT_EQ(shard.buffer, half.units[op.unit.value].parameter_shard);
    EXPECT_EQ(shard.dtype, DType::bf16);
    EXPECT_EQ(shard.size_bytes, half.outputs(op)[0].size_bytes / 8);
    EXPECT_EQ(op.wire_bytes, other.wire_bytes);
  }
}

/// The shard of one rank is all there is, and of the type that is computed with.
TEST(Master, InBf16OfOneRankIsUsedWhereItLies) {
  const Plan plan = tiny_plan(kept_in_bf16(), 1);
  EXPECT_TRUE(in_step(plan, OpKind::cast_shard).empty());
  for (const Buffer& buffer : plan.buffers) EXPECT_NE(buffer.memory, MemoryClass::gathered);
  for (const OpId id : in_step(plan, OpKind::linear)) {
    const Op& op = plan.ops[id.value];
    const Operand& weight = plan.inputs(op)[1];
    EXPECT_EQ(plan.buffers[weight.buffer.value].memory, MemoryClass::parameters);
    EXPECT_EQ(weight.dtype, DType::bf16);
  }
}

TEST(Master, UpdatesReadGradientsInFullAndWriteHalves) {
  const Plan plan = tiny_plan(kept_in_bf16());
  for (const Op& op : plan.ops_of(plan.segment(Segment::Name::update))) {
    if (!model::is_update(op.kind)) continue;
    EXPECT_EQ(plan.inputs(op)[0].dtype, DType::f32);
    EXPECT_EQ(plan.outputs(op)[0].dtype, DType::bf16);
    EXPECT_EQ(plan.outputs(op)[1].dtype, DType::f32);
    EXPECT_EQ(op.cost.written_bytes, static_cast<double>(op.sizes.rows * (2 + 4 + 4)));
  }
}

/// Copies of parameters carry two bytes an element, those of gradients and moments four.
TEST(Master, IsOffloadedInItsType) {
  ScheduleOptions options = kept_in_bf16();
  options.offload = {.parameters = true, .optimizer = true};
  const Plan plan = tiny_plan(options);
  int parameters = 0, moments = 0;
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::fetch && op.kind != OpKind::offload) continue;
    const Operand &from = plan.inputs(op)[0], &to = plan.outputs(op)[0];
    const Buffer& shard = plan.buffers[from.buffer.value];
    const bool of_parameters = shard.memory == MemoryClass::parameters;
    EXPECT_EQ(from.dtype, of_parameters ? DType::bf16 : DType::f32);
    EXPECT_EQ(to.dtype, from.dtype);
    EXPECT_EQ(from.size_bytes, shard.size_bytes);
    EXPECT_EQ(to.size_bytes, plan.buffers[to.buffer.value].size_bytes);
    EXPECT_EQ(op.sizes.rows * size_bytes(from.dtype), from.size_bytes);
    (of_parameters ? parameters : moments) += 1;
  }
  EXPECT_GT(parameters, 0);
  EXPECT_GT(moments, 0);
}

TEST(Master, LiesWhereTheEvaluationPlanHasIt) {
  const Plan plan = tiny_plan(kept_in_bf16()),
             evaluation = build_evaluation_plan(tiny_graph(), {1, 1, 8}, kept_in_bf16());
  EXPECT_EQ(evaluation.master, DType::bf16);
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    const Buffer &a = plan.buffers[plan.units[unit].parameter_shard.value],
                 &b = evaluation.buffers[evaluation.units[unit].parameter_shard.value];
    EXPECT_EQ(a.offset_bytes, b.offset_bytes);
    EXPECT_EQ(a.size_bytes, b.size_bytes);
  }
}

TEST(Master, IsTheTypeOfAllUnits) {
  ScheduleOptions other = kept_in_bf16();
  other.precision_of_unit = {{.parameters = DType::bf16}, {.parameters = DType::f16}};
  EXPECT_THROW(tiny_plan(other), ContractError);
  other = kept_in_bf16();
  other.precision.parameters = DType::f32;
  EXPECT_THROW(tiny_plan(other), ContractError);
}

}  // namespace
}  // namespace foreshard::plan
