#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <set>

#include "plan/order.hpp"
#include "plan/query.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

UnitId block(int index) { return {static_cast<std::uint32_t>(index + 1)}; }

OpId gather(const Plan& plan, int unit, Phase phase) {
  return find(plan, plan.segments.front(),
              {.kind = OpKind::all_gather, .unit = block(unit), .any_phase = false, .phase = phase})
      .front();
}

/// Whether the gather of `unit` may run while the visit of `other` computes.
bool gather_overlaps_visit(const Plan& plan, int unit, int other, Phase phase) {
  const VisitOps visit = find_visit(plan, plan.segments.front(), block(other), phase);
  return may_overlap(plan, plan.segments.front(), gather(plan, unit, phase), visit.last);
}

TEST(Schedule, ForwardPrefetchGathersTheNextUnitDuringThisOne) {
  EXPECT_TRUE(gather_overlaps_visit(tiny_plan({.forward_prefetch = 1}), 2, 1, Phase::forward));
  EXPECT_FALSE(gather_overlaps_visit(tiny_plan({.forward_prefetch = 0}), 2, 1, Phase::forward));
}

TEST(Schedule, BackwardPrefetchGathersTheNextUnitDuringThisOne) {
  EXPECT_TRUE(gather_overlaps_visit(tiny_plan({.prefetch = BackwardPrefetch::pre}), 1, 2, Phase::backward));
  EXPECT_FALSE(gather_overlaps_visit(tiny_plan({.prefetch = BackwardPrefetch::post}), 1, 2, Phase::backward));
}

TEST(Schedule, WithoutPrefetchTheGatherWaitsForTheReduction) {
  const auto overlaps = [](BackwardPrefetch prefetch) {
    const Plan plan = tiny_plan({.prefetch = prefetch});
    const OpId reduce = find(plan, plan.segments.front(), {.kind = OpKind::reduce_scatter, .unit = block(2)}).front();
    return may_overlap(plan, plan.segments.front(), gather(plan, 1, Phase::backward), reduce);
  };
  EXPECT_FALSE(overlaps(BackwardPrefetch::none));
  EXPECT_TRUE(overlaps(BackwardPrefetch::post));
}

TEST(Schedule, AGatherLimitOfOneForbidsOverlap) {
  EXPECT_FALSE(gather_overlaps_visit(tiny_plan({.forward_prefetch = 3, .gather_limit = 1}), 2, 1, Phase::forward));
}

TEST(Schedule, TheReduceLimitHoldsBackTheVisit) {
  const auto overlaps = [](int limit, int visit) {
    const Plan plan = tiny_plan({.reduce_limit = limit});
    const OpId reduce = find(plan, plan.segments.front(), {.kind = OpKind::reduce_scatter, .unit = block(3)}).front();
    return may_overlap(plan, plan.segments.front(), reduce,
                       find_visit(plan, plan.segments.front(), block(visit), Phase::backward).first);
  };
  EXPECT_FALSE(overlaps(1, 2));
  EXPECT_TRUE(overlaps(2, 2));
  EXPECT_FALSE(overlaps(2, 1));
  EXPECT_TRUE(overlaps(3, 1));
}

TEST(Schedule, GathersUnitsAndReducesThemOnce) {
  for (const int layers : {1, 2, 5}) {
    const Plan plan = tiny_plan({}, 4, 1, layers);
    const auto n = static_cast<std::size_t>(layers);
    const auto count = [&](OpKind kind) { return find(plan, plan.segments.front(), {.kind = kind}).size(); };
    // N units are the blocks and the root: N gathers forward, all but the kept root again in backward, N reductions.
    EXPECT_EQ(count(OpKind::all_gather), (n + 1) + n);
    EXPECT_EQ(count(OpKind::reduce_scatter), n + 1);
    EXPECT_EQ(count(OpKind::all_reduce), 0U);
  }
}

TEST(Schedule, MiddleSegmentsDoNotGrowThePlan) {
  const auto ops = [](int micro_batches) {
    ScheduleOptions options;
    options.micro_batches = micro_batches;
    return tiny_plan(options).ops.size();
  };
  EXPECT_EQ(ops(3), ops(1000));
}

TEST(Schedule, EverythingPrecedesTheSegmentAfterTheNext) {
  ScheduleOptions options;
  options.micro_batches = 3;
  const Plan plan = tiny_plan(options);
  const Segment& middle = plan.segment(Segment::Name::middle);
  const Order order(plan, middle, plan.segment(Segment::Name::last));
  // Whatever starts in the segment after `last` starts after its optimizer, or after a unit's last use there: by then
  // everything of `middle` has ended.
  for (const OpId freed : plan.segment(Segment::Name::last).points[0]) {
    if (!freed.valid()) continue;
    Clock end = order.start(freed, 1);
    for (std::uint32_t id = middle.first_op; id < middle.first_op + middle.op_count; ++id)
      EXPECT_GE(end[static_cast<std::size_t>(plan.ops[id].lane)], order.position({id}));
  }
}

TEST(Schedule, PaddingIsZeroedBeforeItIsReduced) {
  const Plan plan = tiny_plan({}, 7);  // nothing divides by 7
  const Segment& segment = plan.segments.front();
  const Order order(plan, segment);
  for (std::uint32_t unit = 0; unit < plan.units.size(); ++unit) {
    const FlatParameter& flat = plan.units[unit];
    ASSERT_GT(flat.padded_elements, flat.elements);
    EXPECT_EQ(flat.shard_elements % 16, 0) << "shards of fp32 are multiples of 64 bytes";
    std::vector<OpId> fills;
    for (const OpId fill : find(plan, segment, {.kind = OpKind::zero_fill, .unit = {unit}})) fills.push_back(fill);
    ASSERT_EQ(fills.size(), 1U);
    const OpId reduce = find(plan, segment, {.kind = OpKind::reduce_scatter, .unit = {unit}}).front();
    EXPECT_TRUE(order.precedes(fills.front(), reduce));
    EXPECT_EQ(plan.outputs(plan.ops[fills.front().value])[0].size_bytes, 4 * (flat.padded_elements - flat.elements));
  }
}

TEST(PlanHash, SeesASwapOfEqualUnits) {
  const Plan plan = tiny_plan({});
  Plan swapped = plan;
  const auto gathers =
      find(plan, plan.segments.front(), {.kind = OpKind::all_gather, .any_phase = false, .phase = Phase::backward});
  std::swap(swapped.ops[gathers[0].value].unit, swapped.ops[gathers[1].value].unit);
  EXPECT_EQ(hash_of(plan), hash_of(tiny_plan({})));
  EXPECT_NE(hash_of(plan), hash_of(swapped));
}

/// Nothing in a plan follows the order of addresses: each time all is built at others.
TEST(PlanHash, DoesNotDependOnAddresses) {
  std::mt19937 random(1);
  std::vector<std::unique_ptr<std::byte[]>> filling;
  std::set<std::uint64_t> hashes;
  std::set<const Op*> places;
  std::vector<Plan> kept;  // so that no other plan gets its addresses
  for (int i = 0; i < 200; ++i) {
    for (int block = 0; block < 20; ++block) filling.push_back(std::make_unique<std::byte[]>(1 + random() % 3000));
    for (int block = 0; block < 10; ++block) filling[random() % filling.size()].reset();
    kept.push_back(tiny_plan(
        {.wrap = {.policy = Wrap::Policy::size, .count = 300}, .micro_batches = 3, .offload = {true, true, true}}, 4,
        2));
    hashes.insert(hash_of(kept.back()));
    places.insert(kept.back().ops.data());
  }
  EXPECT_EQ(hashes.size(), 1U);
  EXPECT_GT(places.size(), 20U) << "the addresses were the same";
}

}  // namespace
}  // namespace foreshard::plan
