// What wrapping, freezing and replicating do to a plan's bytes and collectives, against closed formulas.
#include <gtest/gtest.h>

#include <set>

#include "plan/query.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

using Policy = Wrap::Policy;

constexpr Mesh full{.inner = 8}, hybrid{.replicas = 2, .inner = 4};

Plan plan_of(const Wrap& wrap, const Mesh& mesh = full, int micro_batches = 1) {
  return build_plan(tiny_graph(), mesh, {.wrap = wrap, .micro_batches = micro_batches});
}

std::int64_t count(const Plan& plan, OpKind kind, std::int64_t rows = -1) {
  std::int64_t found = 0;
  for (const Segment* segment : plan.sequence())
    for (const Op& op : plan.ops_of(*segment)) found += op.kind == kind && (rows < 0 || op.sizes.rows == rows);
  return found;
}

std::int64_t rows_of(const Plan& plan, OpKind kind) {
  std::int64_t rows = 0;
  for (const Op& op : plan.ops) rows += op.kind == kind ? op.sizes.rows : 0;
  return rows;
}

std::int64_t persistent_bytes(const Plan& plan, MemoryClass memory) {
  std::int64_t bytes = 0;
  for (const Buffer& buffer : plan.buffers)
    bytes += buffer.persistent && buffer.memory == memory ? buffer.size_bytes : 0;
  return bytes;
}

/// A multiple of 64 bytes of fp32 on each of F ranks.
std::int64_t padded(std::int64_t elements, std::int64_t F) { return (elements + 16 * F - 1) / (16 * F) * 16 * F; }

// The tiny model's parameters: width 16, vocabulary 31, 8 positions.
constexpr std::int64_t D = 16, norms = 2 * D, attention = 4 * D * D + 4 * D, mlp = 8 * D * D + 5 * D,
                       block = 2 * norms + attention + mlp, embeddings = (31 + 8) * D, root = embeddings + norms;

TEST(UnitsPlan, GathersAndReductionsCountUnits) {
  for (const int k : {1, 3}) {
    const auto expect = [&](const Wrap& wrap, std::int64_t units) {
      EXPECT_EQ(count(plan_of(wrap, full, k), OpKind::all_gather), 1 + 2 * units * k);
      EXPECT_EQ(count(plan_of(wrap, full, k), OpKind::reduce_scatter), (1 + units) * k);
      EXPECT_EQ(count(plan_of(wrap, hybrid, k), OpKind::all_reduce), (1 + units) * k);
    };
    expect({}, 4);
    expect({.policy = Policy::blocks, .count = 2}, 2);
    expect({.policy = Policy::blocks, .count = 9}, 1);
    expect({.policy = Policy::none}, 0);
    expect({.policy = Policy::classes, .names = {"attn", "mlp"}}, 8);
    expect({.policy = Policy::size, .count = 1}, 1 + 4 * 6 + 1);
  }
}

TEST(UnitsPlan, GatherBytesAreThoseOfTheUnitsInEachPass) {
  const Plan pairs = plan_of({.policy = Policy::blocks, .count = 2});
  EXPECT_EQ(rows_of(pairs, OpKind::all_gather), padded(root, 8) + 2 * 2 * padded(2 * block, 8));
  const Plan parts = plan_of({.policy = Policy::classes, .names = {"attn", "mlp"}});
  EXPECT_EQ(rows_of(parts, OpKind::all_gather),
            padded(root + 8 * norms, 8) + 2 * 4 * (padded(attention, 8) + padded(mlp, 8)));
}

/// With everything gathered at once the arena is persistent bytes, the whole model, its whole gradient and activations.
TEST(UnitsPlan, OneUnitHoldsAllOfTheModelAtItsPeak) {
  const Plan none = plan_of({.policy = Policy::none});
  std::int64_t whole = 0;
  for (const Buffer& buffer : none.buffers)
    if (buffer.memory == MemoryClass::gathered || buffer.memory == MemoryClass::unsharded_gradients)
      whole += buffer.size_bytes;
  EXPECT_EQ(whole, 2 * 4 * padded(root + 4 * block, 8));
  EXPECT_GE(memory_lower_bound(none), persistent_bytes(none, MemoryClass::parameters) * 4 + whole);
}

TEST(UnitsPlan, FrozenParametersAreGatheredButNeitherReducedNorUpdated) {
  const Plan plan = plan_of({.frozen = {"h.*.weight"}});
  const std::int64_t weights = 12 * D * D + 2 * D, biases = block - weights;
  EXPECT_EQ(rows_of(plan, OpKind::all_gather), padded(root, 8) + 8 * (padded(biases, 8) + padded(weights, 8)));
  EXPECT_EQ(rows_of(plan, OpKind::reduce_scatter), padded(root, 8) + 4 * padded(biases, 8));
  EXPECT_EQ(rows_of(plan, OpKind::adamw) * 8, padded(root, 8) + 4 * padded(biases, 8));
  EXPECT_EQ(rows_of(plan, OpKind::grad_norm) * 8, padded(root, 8) + 4 * padded(biases, 8));
  const std::int64_t trained = 4 * (padded(root, 8) + 4 * padded(biases, 8)) / 8;
  EXPECT_EQ(persistent_bytes(plan, MemoryClass::gradients), trained);
  EXPECT_EQ(persistent_bytes(plan, MemoryClass::optimizer), 2 * trained);
  EXPECT_EQ(persistent_bytes(plan, MemoryClass::parameters), trained + 4 * 4 * padded(weights, 8) / 8);
  EXPECT_EQ(count(plan, OpKind::linear_weight_grad), 1) << "the head's";
  for (const Buffer& buffer : plan.buffers) {
    const bool of_block = buffer.memory == MemoryClass::unsharded_gradients && buffer.unit != model::root_unit;
    EXPECT_EQ(of_block ? buffer.size_bytes : 4 * padded(biases, 8), 4 * padded(biases, 8));
  }
}

TEST(UnitsPlan, NothingFlowsBackBelowTheLowestTrainedParameter) {
  const Plan plan = plan_of({.frozen = {"w*", "h.0.*", "h.1.*"}});
  const Segment& step = plan.segments.front();
  for (const std::uint32_t unit : {1U, 2U})
    EXPECT_FALSE(find_visit(plan, step, {unit}, Phase::backward).first.valid()) << "block " << unit - 1;
  EXPECT_EQ(count(plan, OpKind::embedding_backward), 0);
  EXPECT_EQ(count(plan, OpKind::all_gather), 1 + 1 + 2 + 2 * 2) << "root in two ranges, two blocks once, two twice";
  const OpId lowest = find(plan, step, {.kind = OpKind::layer_norm_backward, .unit = {3}}).back();
  EXPECT_FALSE(plan.outputs(plan.ops[lowest.value])[0].present()) << "no input gradient";
  EXPECT_TRUE(plan.outputs(plan.ops[lowest.value])[1].present());
}

TEST(UnitsPlan, IgnoredParametersAreSummedOverTheWorldOnceAMicroBatch) {
  for (const Mesh& mesh : {full, hybrid})
    for (const int k : {1, 3}) {
      const Plan plan = plan_of({.ignored = {"h.*.ln_*"}}, mesh, k);
      const std::int64_t elements = 4 * 2 * norms;
      EXPECT_EQ(plan.unit_names.back(), "ignored");
      EXPECT_EQ(plan.units.back().shard_degree, 1);
      EXPECT_EQ(plan.units.back().shard_elements, elements);
      EXPECT_EQ(count(plan, OpKind::all_reduce, elements), k);
      EXPECT_EQ(count(plan, OpKind::all_gather), 1 + 2 * 4 * k) << "none of them";
      for (const Op& op : plan.ops) {
        const bool of_ignored = op.kind == OpKind::all_reduce && op.sizes.rows == elements;
        EXPECT_EQ(of_ignored, op.group == GroupKind::world && op.phase == Phase::backward);
      }
    }
}

/// It is added to the norm where all ranks have summed theirs, not before.
TEST(UnitsPlan, AReplicatedUnitCountsOnceInTheNorm) {
  const Plan plan = plan_of({.ignored = {"h.*.ln_*"}});
  const Segment& update = plan.segment(Segment::Name::update);
  const OpId sum = find(plan, update, {.kind = OpKind::sum_norm}).front();
  const std::uint32_t last = static_cast<std::uint32_t>(plan.units.size()) - 1;
  for (std::uint32_t unit = 0; unit <= last; ++unit) {
    const OpId norm = find(plan, update, {.kind = OpKind::grad_norm, .unit = {unit}}).front();
    EXPECT_EQ(norm.value > sum.value, unit == last) << plan.unit_names[unit];
    EXPECT_FALSE(may_overlap(plan, update, norm, sum));
  }
}

TEST(UnitsPlan, AnOverriddenUnitIsKeptOrReplicated) {
  const Plan plan = plan_of({.overrides = {{"u1", Keep::micro_batch, false}, {"h.2.*", Keep::step, true}}}, full, 2);
  const auto gathers = [&](std::uint32_t unit) {
    std::int64_t found = 0;
    for (const Op& op : plan.ops) found += op.kind == OpKind::all_gather && op.unit.value == unit;
    return found;
  };
  EXPECT_EQ(gathers(1), 4);
  EXPECT_EQ(gathers(2), 2);
  EXPECT_EQ(gathers(3), 0);
  EXPECT_EQ(plan.units[3].shard_elements, padded(block, 1));
}

TEST(UnitsPlan, APartOfAShardIsFoundWhereItsElementsAre) {
  const model::Graph graph = wrap(tiny_graph(2), {.frozen = {"*.weight"}, .ignored = {"h.0.ln_*"}});
  for (const FlatParameter& flat : shard(graph, 3)) {
    std::set<std::pair<std::uint32_t, std::int64_t>> seen;
    for (int rank = 0; rank < flat.shard_degree; ++rank)
      for (const ShardPart& part : parts_of_shard(flat, rank)) {
        EXPECT_LE(part.at + part.count, flat.shard_elements);
        const FlatRange& range = part.piece->trainable ? flat.trainable : flat.frozen;
        const std::int64_t shard_of_range = range.padded_elements / flat.shard_degree;
        for (std::int64_t i = 0; i < part.count; ++i) {
          EXPECT_TRUE(seen.emplace(part.piece->parameter.value, part.first + i).second);
          const std::int64_t in_range = part.piece->offset + part.first + i - range.first;
          ASSERT_EQ(in_range / shard_of_range, rank);
          ASSERT_EQ(part.at + i, range.first / flat.shard_degree + in_range % shard_of_range);
        }
      }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), flat.elements);
  }
}

}  // namespace
}  // namespace foreshard::plan
