#include "sim/virtual_executor.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.hpp"
#include "exec/run_plan.hpp"
#include "hand_made_plan.hpp"

namespace foreshard::sim {
namespace {

using plan::Lane;
using plan::Segment;
using plan::Wait;
using test::HandMadePlan;
using test::on;

struct Span {
  std::int64_t start, end;
  friend bool operator==(const Span&, const Span&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Span& span) {
    return out << "[" << span.start << ", " << span.end << ")";
  }
};

std::vector<trace::Event> events_of(const plan::Plan& plan, double cores, int team = 1, Handover handover = {}) {
  trace::Recorder recorder;
  const auto estimate = [team](const plan::Op& op) {
    return Demand{op.sizes.rows, op.lane == Lane::compute ? team : 1};
  };
  VirtualExecutor executor(plan, estimate, cores, handover, recorder);
  exec::run_plan(plan, executor);
  return recorder.take();
}

/// Start and end by (micro-batch, op), in that order.
std::vector<Span> sorted_spans(std::vector<trace::Event> events) {
  std::sort(events.begin(), events.end(), [](const auto& a, const auto& b) {
    return std::pair(a.micro_batch, a.op) < std::pair(b.micro_batch, b.op);
  });
  std::vector<Span> spans;
  for (const auto& event : events) spans.push_back({event.start_ns, event.start_ns + event.duration_ns});
  return spans;
}

std::vector<Span> spans_of(const plan::Plan& plan, double cores, int team = 1, Handover handover = {}) {
  return sorted_spans(events_of(plan, cores, team, handover));
}

TEST(VirtualExecutor, RunsALaneInOrderAndLanesSideBySide) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  made.op(Lane::compute, 50);
  made.op(Lane::gather, 30);
  EXPECT_EQ(spans_of(made.finish(), 2), (std::vector<Span>{{0, 100}, {100, 150}, {0, 30}}));
}

TEST(VirtualExecutor, AnOpStartsWhenItsLaneIsFreeAndItsWaitsAreDone) {
  HandMadePlan made;
  const auto gather = made.op(Lane::gather, 30);
  const auto first = made.op(Lane::compute, 100, {on(gather)});
  made.op(Lane::gather, 20, {on(first)});
  made.op(Lane::compute, 10);
  EXPECT_EQ(spans_of(made.finish(), 2), (std::vector<Span>{{0, 30}, {30, 130}, {130, 150}, {130, 140}}));
}

// One core, two threads: both run at half speed. At 120 the gather's 60 are done and so are 60 of the compute op's 100;
// the remaining 40 run alone.
TEST(VirtualExecutor, LanesOfARankShareItsCore) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  made.op(Lane::gather, 60);
  EXPECT_EQ(spans_of(made.finish(), 1), (std::vector<Span>{{0, 160}, {0, 120}}));
}

// Half a core: alone at half speed, two at a quarter. The gather ends at 40 · 4 = 160, when 60 of compute are left: 60
// · 2.
TEST(VirtualExecutor, OversubscribedRanksRunSlower) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  made.op(Lane::gather, 40);
  EXPECT_EQ(spans_of(made.finish(), 0.5), (std::vector<Span>{{0, 280}, {0, 160}}));
}

// Two cores, a team of two and a gather: three threads at 2/3. The gather's 40 take 60; 60 of compute are left at full
// speed. 2/3 is rounded down in fixed point, so each advance may end 1 ns later.
TEST(VirtualExecutor, ATeamSharesByThread) {
  HandMadePlan made;
  made.op(Lane::compute, 100, {});
  made.op(Lane::gather, 40);
  EXPECT_EQ(spans_of(made.finish(), 2, 2), (std::vector<Span>{{0, 121}, {0, 61}}));
}

// The copy's 25 take 50 at half speed, then the gather's 10 take 20: at 70, 65 of the compute op's 100 are left and run
// alone.
TEST(VirtualExecutor, RatesChangeWithTheRunningSet) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  const auto reduce = made.op(Lane::copy, 25);
  made.op(Lane::gather, 10, {on(reduce)});
  EXPECT_EQ(spans_of(made.finish(), 1), (std::vector<Span>{{0, 135}, {0, 50}, {50, 70}}));
}

std::vector<Span> spans_with(const plan::Plan& plan, double cores, const Demand& communication) {
  trace::Recorder recorder;
  const auto estimate = [&](const plan::Op& op) {
    Demand demand = op.lane == Lane::compute ? Demand{} : communication;
    demand.duration_ns = op.sizes.rows;
    return demand;
  };
  VirtualExecutor executor(plan, estimate, cores, {}, recorder);
  exec::run_plan(plan, executor);
  return sorted_spans(recorder.take());
}

// A gather of 100 at half speed beside compute of 100: half of it is done when compute ends, the rest runs alone.
TEST(VirtualExecutor, TransfersAreSlowerBesideCompute) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  made.op(Lane::gather, 100);
  EXPECT_EQ(spans_with(made.finish(), 2, {.core = 0, .beside_compute = 0.5}), (std::vector<Span>{{0, 100}, {0, 150}}));
}

// It would keep half a core busy alone, a quarter at half speed. So 75 of compute are done at 100, when half of the
// gather is; its other half runs at half speed until compute ends at 100 + 100/3.
TEST(VirtualExecutor, SlowTransfersNeedLessOfACore) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  made.op(Lane::gather, 100);
  const auto spans = spans_with(made.finish(), 1, {.core = 0.5, .beside_compute = 0.5});
  EXPECT_EQ(spans, (std::vector<Span>{{0, 134}, {0, 167}}));
}

// A quarter of the core for the gather while it lasts: of compute 75 are done at 100, the remaining 25 run alone.
TEST(VirtualExecutor, AnOpThatNeedsLittleOfACoreLeavesTheRest) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  made.op(Lane::gather, 100);
  EXPECT_EQ(spans_with(made.finish(), 1, {.core = 0.25}), (std::vector<Span>{{0, 125}, {0, 100}}));
}

// Each needs 3/4 of the link and gets half, 2/3 of its speed: 120 ns for 80, rounded down in fixed point. Then the
// reduction's last 20 run alone.
TEST(VirtualExecutor, CollectivesShareTheLink) {
  HandMadePlan made;
  made.op(Lane::gather, 80);
  made.op(Lane::reduce, 100);
  EXPECT_EQ(spans_with(made.finish(), 2, {.core = 0, .link = 0.75}), (std::vector<Span>{{0, 121}, {0, 141}}));
}

std::vector<Span> spans_on_gpu(const plan::Plan& plan, int sms, const Demand& compute, const Demand& communication) {
  trace::Recorder recorder;
  const auto estimate = [&](const plan::Op& op) {
    Demand demand = op.lane == Lane::compute ? compute : communication;
    demand.duration_ns = op.sizes.rows;
    return demand;
  };
  VirtualExecutor executor(plan, estimate, 1, {}, recorder, sms);
  exec::run_plan(plan, executor);
  return sorted_spans(recorder.take());
}

// 132 blocks on 132 SMs are one wave; on the 108 that a collective leaves they are two: half speed. After the gather's
// 100 ns half of the product's 100 are left.
TEST(VirtualExecutor, AProductOfOneWaveNeedsTwoBesideACollective) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  made.op(Lane::gather, 100);
  const Demand product{.core = 0, .blocks = 132}, gather{.core = 0, .held_sms = 24};
  EXPECT_EQ(spans_on_gpu(made.finish(), 132, product, gather), (std::vector<Span>{{0, 150}, {0, 100}}));
}

// 3584 blocks: 28 waves on 132 SMs, 43 on the 84 that two collectives leave; alone at full speed again.
TEST(VirtualExecutor, CollectivesHoldSmsTogether) {
  HandMadePlan made;
  made.op(Lane::compute, 1000);
  made.op(Lane::gather, 43);
  made.op(Lane::reduce, 43);
  const Demand product{.core = 0, .blocks = 3584}, collective{.core = 0, .held_sms = 24};
  EXPECT_EQ(spans_on_gpu(made.finish(), 132, product, collective), (std::vector<Span>{{0, 1016}, {0, 43}, {0, 43}}));
}

// The gather fills a quarter of the memory's bandwidth and the norm all of it, so the norm runs at 3/4: 75 of 100 are
// done at 100.
TEST(VirtualExecutor, OpsShareTheMemoryOfADevice) {
  HandMadePlan made;
  made.op(Lane::compute, 100);
  made.op(Lane::gather, 100);
  const Demand norm{.core = 0, .memory = 1}, gather{.core = 0, .memory = 0.25};
  EXPECT_EQ(spans_on_gpu(made.finish(), 132, norm, gather), (std::vector<Span>{{0, 125}, {0, 100}}));
}

// Hand-over: 5 ns behind an op of the same lane, 20 ns when woken by another lane or at the beginning.
TEST(VirtualExecutor, AHandoverPassesBeforeEachOp) {
  HandMadePlan made;
  const auto first = made.op(Lane::compute, 100);
  made.op(Lane::compute, 10);
  made.op(Lane::gather, 30, {on(first)});
  EXPECT_EQ(spans_of(made.finish(), 2, 1, {.next_ns = 5, .wake_ns = 20}),
            (std::vector<Span>{{20, 120}, {125, 135}, {140, 170}}));
}

// The gather of the next micro-batch waits only for the point "freed" of the one before, so it runs beside the compute
// op.
TEST(VirtualExecutor, WaitsCrossSegments) {
  auto made = HandMadePlan::empty(3);
  for (const auto name : {Segment::Name::first, Segment::Name::middle, Segment::Name::last}) {
    made.open(name);
    const auto gather = made.op(Lane::gather, 40, {{Wait::On::freed, 7}});
    const auto use = made.op(Lane::compute, 60, {on(gather)});
    made.op(Lane::compute, 100);
    made.point(Wait::On::freed, 7, use);
  }
  EXPECT_EQ(spans_of(made.finish(), 2), (std::vector<Span>{{0, 40},
                                                           {40, 100},
                                                           {100, 200},  //
                                                           {100, 140},
                                                           {200, 260},
                                                           {260, 360},  //
                                                           {260, 300},
                                                           {360, 420},
                                                           {420, 520}}));
}

TEST(VirtualExecutor, TimeGoesOnFromStepToStep) {
  HandMadePlan made;
  made.op(Lane::compute, 70);
  const plan::Plan& plan = made.finish();
  trace::Recorder recorder;
  VirtualExecutor executor(
      plan,
      [](const plan::Op& op) {
        return Demand{op.sizes.rows, 1};
      },
      1, {}, recorder);
  exec::run_plan(plan, executor);
  executor.set_step(2);
  exec::run_plan(plan, executor);
  const auto events = recorder.take();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].start_ns, 70);
  EXPECT_EQ(events[1].step, 2);
  EXPECT_EQ(executor.now_ns(), 140);
}

TEST(VirtualExecutor, AnOpTakesAtLeastOneNanosecond) {
  HandMadePlan made;
  made.op(Lane::compute, 0);
  EXPECT_EQ(spans_of(made.finish(), 1), (std::vector<Span>{{0, 1}}));
}

TEST(VirtualExecutor, NamesAWaitThatCannotBeMet) {
  HandMadePlan made;
  made.op(Lane::compute, 10);
  const plan::Plan& plan = made.finish();
  trace::Recorder recorder;
  VirtualExecutor executor(
      plan, [](const plan::Op&) { return Demand{}; }, 1, {}, recorder);
  const exec::Ticket itself{Lane::compute, 1};
  executor.issue({plan.ops.data(), 0}, {&itself, 1});
  EXPECT_THROW(executor.finish(), ContractError);
}

/// Random ops on random lanes with random waits on earlier ones.
const plan::Plan& random_plan(HandMadePlan& made, unsigned seed) {
  std::mt19937 random(seed);
  for (std::uint32_t i = 0; i < 300; ++i) {
    std::vector<Wait> waits;
    if (i > 0 && random() % 2) waits.push_back(on(plan::OpId{static_cast<std::uint32_t>(random() % i)}));
    made.op(static_cast<Lane>(random() % plan::lane_count), random() % 1000, waits);
  }
  return made.finish();
}

TEST(VirtualExecutor, EqualInputGivesEqualEvents) {
  HandMadePlan made;
  const plan::Plan& plan = random_plan(made, 1);
  EXPECT_EQ(spans_of(plan, 0.7, 3, {3, 9}), spans_of(plan, 0.7, 3, {3, 9}));
}

// Independent of the simulation: no op starts before its predecessors end, and the cores are never more than full: the
// work of all ops is at most cores × time, and at least one thread runs until the end.
TEST(VirtualExecutor, RandomPlansKeepOrderAndCapacity) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    HandMadePlan made;
    const plan::Plan& plan = random_plan(made, seed);
    const double cores = 1.5;
    const auto spans = spans_of(plan, cores);
    std::array<std::int64_t, plan::lane_count> lane_end{};
    std::int64_t end = 0;
    double work = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
      auto& free_at = lane_end[static_cast<std::size_t>(plan.ops[i].lane)];
      EXPECT_GE(spans[i].start, free_at);
      for (const Wait& wait : plan.waits_of(plan.ops[i])) EXPECT_GE(spans[i].start, spans[wait.index].end);
      free_at = spans[i].end;
      end = std::max(end, spans[i].end);
      work += static_cast<double>(std::max<std::int64_t>(1, plan.ops[i].sizes.rows));
    }
    const double rounding = static_cast<double>(2 * spans.size());
    EXPECT_LE(work, cores * static_cast<double>(end) + rounding);
    EXPECT_GE(work, static_cast<double>(end) - rounding);
  }
}

}  // namespace
}  // namespace foreshard::sim
