#include "trace/analysis.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tiny_run.hpp"
#include "trace/memory.hpp"

namespace foreshard::trace {
namespace {

using plan::MemoryClass;
using plan::OpKind;

std::int64_t of(const MemoryPoint& point, MemoryClass memory) { return point.bytes[static_cast<std::size_t>(memory)]; }

const KindTotals& of(const StepTotals& totals, OpKind kind) { return totals.kinds[static_cast<std::size_t>(kind)]; }

TEST(TraceAnalysis, ExposedCommunicationIsWhatComputeDoesNotCover) {
  const plan::Plan plan = tiny_plan();
  std::vector<Event> events = tiny_step(0, 1);
  EXPECT_EQ(exposed_communication_ns(events, plan), 200);
  events[3].start_ns = 250;  // half under op 2, which ends at 300
  EXPECT_EQ(exposed_communication_ns(events, plan), 100 + 50);
  events[0] = {.start_ns = 260, .duration_ns = 200, .op = 0};  // overlaps op 3: [300, 400) once; [400, 460) under op 4
  EXPECT_EQ(exposed_communication_ns(events, plan), 100);
  EXPECT_EQ(exposed_communication_ns({}, plan), 0);
}

TEST(TraceAnalysis, TotalsAddUpToTheStep) {
  const plan::Plan plan = tiny_plan();
  const StepTotals totals = totals_of(tiny_step(0, 1), plan, 620);
  EXPECT_EQ(totals.phase_ns, (std::array<double, 3>{100, 100, 100}));
  EXPECT_EQ(totals.exposed_ns, 200);
  EXPECT_EQ(totals.idle_ns, 120);
  EXPECT_EQ(of(totals, OpKind::linear).count, 1);
  EXPECT_EQ(of(totals, OpKind::linear).bytes, 384);
  EXPECT_EQ(of(totals, OpKind::all_gather).received_bytes, 512);
  EXPECT_EQ(of(totals, OpKind::gelu).count, 0);
}

TEST(TraceAnalysis, TypicalStepIsTheMedianOfMeansWithoutWarmUp) {
  const plan::Plan plan = tiny_plan();
  std::vector<std::vector<Event>> events(2);
  std::vector<StepRow> steps;
  const std::int64_t duration[4][2] = {{9000, 9000}, {100, 300}, {500, 700}, {210, 230}};  // means: 200, 600, 220
  for (std::int32_t step = 0; step < 4; ++step)
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      auto of_step = tiny_step(0, step);
      of_step[1].duration_ns = duration[step][rank];
      events[rank].insert(events[rank].end(), of_step.begin(), of_step.end());
      steps.push_back({.step = step, .rank = rank, .duration_ns = duration[step][rank]});
    }
  const StepTotals typical = typical_step(plan, events, steps, 1);
  EXPECT_EQ(typical.step_ns, 220);
  EXPECT_EQ(of(typical, OpKind::linear).time_ns, 220);
  EXPECT_DOUBLE_EQ(typical_step_s(steps, 1), 220e-9);
  EXPECT_EQ(typical_step(plan, events, std::span(steps).first(2), 1).step_ns, 9000) << "the only step counts";
}

TEST(TraceAnalysis, MedianOfAnEvenCountIsTheMiddle) {
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_TRUE(std::isnan(median({})));
}

TEST(TraceAnalysis, CollectivesAreCountedBySizeOfTheWhole) {
  const Collectives collectives = collectives_of(tiny_plan());
  EXPECT_EQ(collectives.all_gather, (CollectiveTotal{1, 1024, 512}));
  EXPECT_EQ(collectives.reduce_scatter, (CollectiveTotal{1, 1024, 512}));
  EXPECT_EQ(collectives.all_reduce, CollectiveTotal{});
}

// Lives by hand: whole [0, 200), activation [100, 300), gradient [200, 400); 1,024 bytes are persistent.
TEST(MemoryTimeline, FollowsFirstAndLastTouch) {
  const auto timeline = memory_timeline(tiny_plan(), tiny_step(0, 1));
  std::vector<std::pair<std::int64_t, std::int64_t>> totals;
  for (const MemoryPoint& point : timeline) totals.emplace_back(point.time_ns, point.total());
  const std::vector<std::pair<std::int64_t, std::int64_t>> expected{
      {0, 1024 + 1024}, {100, 1024 + 1024 + 128}, {200, 1024 + 128 + 1024}, {300, 1024 + 1024}, {400, 1024}};
  EXPECT_EQ(totals, expected);
  EXPECT_EQ(peak_of(timeline).time_ns, 100);
  EXPECT_EQ(of(timeline[1], MemoryClass::gathered), 1024);
  EXPECT_EQ(of(timeline[2], MemoryClass::gathered), 0);
  EXPECT_EQ(of(timeline[2], MemoryClass::unsharded_gradients), 1024);
  EXPECT_EQ(of(timeline[4], MemoryClass::parameters), 512);
}

TEST(MemoryTimeline, ValueReadInALaterRunOfASegmentLivesInBetween) {
  const plan::Plan plan = tiny_plan();
  std::vector<Event> events = tiny_step(0, 1);
  Event again = events[1];  // op 1 reads `whole` once more in the next micro-batch
  again.start_ns = 700;
  again.micro_batch = 1;
  events.push_back(again);
  std::int64_t at_500 = 0;
  for (const MemoryPoint& point : memory_timeline(plan, events))
    if (point.time_ns <= 500) at_500 = of(point, MemoryClass::gathered);
  EXPECT_EQ(at_500, 1024);
}

TEST(MemoryTimeline, IsEmptyWithoutEvents) { EXPECT_TRUE(memory_timeline(tiny_plan(), {}).empty()); }

}  // namespace
}  // namespace foreshard::trace
