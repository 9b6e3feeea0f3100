// Where shards lie and when they are copied, in plans that keep some of them in host memory.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/query.hpp"
#include "timing_oracle.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

constexpr Offload parameters{.parameters = true}, gradients{.gradients = true}, optimizer{.optimizer = true},
    everything{.parameters = true, .gradients = true, .optimizer = true};

Plan plan_of(const Offload& offload, const Mesh& mesh = {.inner = 8}, ScheduleOptions options = {}) {
  options.offload = offload;
  return build_plan(tiny_graph(), mesh, options);
}

std::vector<Offload> combinations() {
  std::vector<Offload> all;
  for (int bits = 0; bits < 8; ++bits) all.push_back({(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
  return all;
}

TEST(Offload, EveryCombinationIsPlacedAndOrderedRightly) {
  for (const Offload& offload : combinations())
    for (const Mesh& mesh : {Mesh{}, Mesh{1, 1, 2}, Mesh{3, 1, 1}, Mesh{2, 1, 2}, Mesh{2, 2, 2}})
      for (const Accumulation accumulation :
           {Accumulation::reduce, Accumulation::reduce_scatter, Accumulation::no_sync})
        for (const int micro_batches : {1, 2, 4}) {
          const Plan plan = plan_of(offload, mesh, {.accumulation = accumulation, .micro_batches = micro_batches});
          const std::string what =
              fmt::format("parameters {} gradients {} optimizer {}, mesh {}x{}x{}, accumulation {}, {} micro-batches",
                          offload.parameters, offload.gradients, offload.optimizer, mesh.replicas, mesh.outer,
                          mesh.inner, static_cast<int>(accumulation), micro_batches);
          EXPECT_THAT(TimingOracle(plan).overlaps(), testing::IsEmpty()) << what;
          EXPECT_THAT(TimingOracle(plan, 1).hazards(), testing::IsEmpty()) << what;
        }
}

std::int64_t shard_bytes(const Plan& plan, UnitId unit) { return 4 * plan.units[unit.value].shard_elements; }

std::int64_t all_shard_bytes(const Plan& plan) {
  std::int64_t bytes = 0;
  for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit) bytes += shard_bytes(plan, {unit});
  return bytes;
}

TEST(Offload, TheHostHoldsWhatIsMovedAndNothingElse) {
  for (const Offload& offload : combinations()) {
    const Plan plan = plan_of(offload);
    const int moved = offload.parameters + offload.gradients + 2 * offload.optimizer;
    EXPECT_EQ(plan.host_arena_bytes, moved * all_shard_bytes(plan));
  }
}

const Segment& step_of(const Plan& plan) { return plan.segments.front(); }
UnitId block(int index) { return {static_cast<std::uint32_t>(index + 1)}; }

OpId only(const Plan& plan, const Segment& segment, const OpQuery& query) {
  const auto found = find(plan, segment, query);
  EXPECT_EQ(found.size(), 1U);
  return found.front();
}

/// A fetch may run one visit before its gather may, and no earlier.
TEST(Offload, ShardsAreFetchedOneVisitAheadOfTheirGather) {
  const Plan plan = plan_of(parameters);
  const auto op = [&](OpKind kind, int unit) {
    return only(plan, step_of(plan), {.kind = kind, .unit = block(unit), .any_phase = false, .phase = Phase::backward});
  };
  const auto overlaps = [&](OpId a, int unit) {
    return may_overlap(plan, step_of(plan), a, find_visit(plan, step_of(plan), block(unit), Phase::backward).last);
  };
  const OpId fetch = op(OpKind::fetch, 0), gather = op(OpKind::all_gather, 0);
  EXPECT_EQ(plan.ops[fetch.value].lane, Lane::copy);
  EXPECT_TRUE(overlaps(gather, 1));
  EXPECT_FALSE(overlaps(gather, 2));
  EXPECT_TRUE(overlaps(fetch, 2));
  EXPECT_FALSE(overlaps(fetch, 3));
  EXPECT_EQ(plan.inputs(plan.ops[gather.value])[0].buffer, plan.outputs(plan.ops[fetch.value])[0].buffer);
}

TEST(Offload, NothingIsFetchedForWhatTheInnerGroupRetains) {
  const Plan plan = plan_of(parameters, {1, 2, 4});
  EXPECT_EQ(find(plan, step_of(plan), {.kind = OpKind::fetch}).size(), plan.units.size());
  const Plan kept = plan_of(parameters, {.inner = 8}, {.keep = Keep::step, .micro_batches = 2});
  EXPECT_EQ(find(kept, kept.segment(Segment::Name::first), {.kind = OpKind::fetch}).size(), kept.units.size());
  EXPECT_TRUE(find(kept, kept.segment(Segment::Name::last), {.kind = OpKind::fetch}).empty());
}

TEST(Offload, GradientsAddUpInTheHost) {
  const auto added = [](const Plan& plan, Segment::Name name) {
    std::size_t count = 0;
    for (const OpId id : find(plan, plan.segment(name), {.kind = OpKind::offload}))
      count += plan.ops[id.value].accumulate;
    return count;
  };
  const Plan each = plan_of(gradients, {.inner = 8}, {.micro_batches = 3});
  EXPECT_EQ(added(each, Segment::Name::first), 0U);
  EXPECT_EQ(added(each, Segment::Name::middle), each.units.size());
  EXPECT_EQ(added(each, Segment::Name::last), each.units.size());
  const Plan once = plan_of(gradients, {.inner = 8}, {.accumulation = Accumulation::no_sync, .micro_batches = 3});
  EXPECT_EQ(added(once, Segment::Name::last), 0U);
  EXPECT_TRUE(find(once, once.segment(Segment::Name::first), {.kind = OpKind::offload}).empty());
}

TEST(Offload, OneUnitIsUpdatedWhileTheNextOnesCopiesGoOn) {
  const Plan plan = plan_of(optimizer);
  const Segment& update = plan.segment(Segment::Name::update);
  const auto copy = [&](OpKind kind, int unit) {
    return find(plan, update, {.kind = kind, .unit = block(unit)}).front();
  };
  const OpId step = only(plan, update, {.kind = OpKind::adamw, .unit = block(1)});
  EXPECT_TRUE(may_overlap(plan, update, step, copy(OpKind::fetch, 2)));
  EXPECT_TRUE(may_overlap(plan, update, step, copy(OpKind::offload, 0)));
  EXPECT_FALSE(may_overlap(plan, update, step, copy(OpKind::fetch, 3)));
  EXPECT_EQ(find(plan, update, {.kind = OpKind::fetch}).size(), 2 * plan.units.size()) << "two moments";
  EXPECT_EQ(find(plan, update, {.kind = OpKind::offload}).size(), 2 * plan.units.size());
}

TEST(Offload, TheUpdateWorksInTheHostWhereAllIsThere) {
  const Plan plan = plan_of(everything);
  const Segment& update = plan.segment(Segment::Name::update);
  for (const Op& op : plan.ops_of(update)) EXPECT_NE(op.lane, Lane::copy);
  for (const OpId id : find(plan, update, {.kind = OpKind::adamw}))
    for (const Operand& operand : plan.outputs(plan.ops[id.value]))
      EXPECT_EQ(plan.buffers[operand.buffer.value].space, Space::host);
}

/// The device loses what is moved and gains what is on its way when most is live: while the head computes, the shards
/// of the last two blocks, one being gathered and one fetched; no gradient is reduced yet, and the update needs less
/// than backward.
TEST(Offload, TheDeviceNeedsWhatIsMovedLessButForCopiesOnTheirWay) {
  const auto plan_of_head = [](const Offload& offload) {
    ScheduleOptions options;
    options.offload = offload;
    const model::GptConfig model{.layers = 4, .width = 16, .heads = 2, .vocab_size = 400, .max_seq_len = 8};
    return build_plan(model::build_gpt(model, {8, 8}), {.inner = 2}, options);
  };
  const Plan none = plan_of_head({});
  const std::int64_t all = all_shard_bytes(none), one = shard_bytes(none, block(0));
  for (const Offload& offload : combinations()) {
    const Plan plan = plan_of_head(offload);
    const std::int64_t moved = (offload.parameters + offload.gradients + 2 * offload.optimizer) * all;
    const std::int64_t staged = offload.parameters ? 2 * one : 0;
    EXPECT_EQ(memory_lower_bound(none) - memory_lower_bound(plan), moved - staged);
    EXPECT_EQ(none.arena_bytes - plan.arena_bytes, moved - staged);
  }
}

}  // namespace
}  // namespace foreshard::plan
