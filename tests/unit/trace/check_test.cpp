#include "trace/check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tiny_run.hpp"

namespace foreshard::trace {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Trace tiny_trace(void (*change)(std::vector<Event>&) = nullptr, const plan::Plan& plan = tiny_plan()) {
  const TemporaryFolder folder;
  write_tiny(folder.file("t.h5"), 2, 3, Kind::measured, plan, change);
  return read(folder.file("t.h5"));
}

std::vector<std::string> failed(const Trace& trace) {
  std::vector<std::string> names;
  for (const Finding& finding : check(trace))
    if (finding.violations) names.push_back(finding.check);
  return names;
}

std::string first_violation(const Trace& trace) {
  for (const Finding& finding : check(trace))
    if (finding.violations) return finding.first_violation;
  return "";
}

TEST(TraceCheck, SoundTracePassesAndEverythingWasLookedAt) {
  const Trace trace = tiny_trace();
  EXPECT_THAT(failed(trace), IsEmpty());
  for (const Finding& finding : check(trace)) EXPECT_GT(finding.looked_at, 0u) << finding.check;
}

TEST(TraceCheck, FindsAnOverlapOnALane) {
  const Trace trace = tiny_trace([](auto& events) { events[1].duration_ns = 130; });
  EXPECT_THAT(failed(trace), ElementsAre("lanes"));
  EXPECT_THAT(first_violation(trace),
              HasSubstr("rank 0 step 1: op 2 linear_weight_grad root (compute) starts 30 ns before op 1"));
}

TEST(TraceCheck, FindsAViolatedWait) {
  const Trace trace = tiny_trace([](auto& events) { events[0].duration_ns = 101; });
  EXPECT_THAT(failed(trace), ElementsAre("waits"));
  EXPECT_THAT(first_violation(trace), HasSubstr("op 1 linear root (compute) starts 1 ns before op 0 all_gather"));
}

TEST(TraceCheck, FindsAViolatedWaitAcrossSegments) {
  const Trace trace = tiny_trace([](auto& events) { events[3].duration_ns = 140; });
  EXPECT_THAT(failed(trace), ElementsAre("waits"));
  EXPECT_THAT(first_violation(trace), HasSubstr("op 4 adamw root (compute) starts 40 ns before op 3"));
}

TEST(TraceCheck, FindsAnotherOrderThanThePlans) {
  const Trace trace = tiny_trace([](auto& events) { std::swap(events[1].start_ns, events[2].start_ns); });
  EXPECT_THAT(failed(trace), ElementsAre("order"));
}

TEST(TraceCheck, FindsMissingAndDoubledOps) {
  EXPECT_THAT(failed(tiny_trace([](auto& events) { events.erase(events.begin() + 3); })), ElementsAre("counts"));
  EXPECT_THAT(failed(tiny_trace([](auto& events) {
                events.push_back(events[4]);
                events.back().start_ns += 100;
              })),
              ElementsAre("counts"));
  EXPECT_THAT(failed(tiny_trace([](auto& events) { events[4].micro_batch = 7; })), ElementsAre("counts"));
}

TEST(TraceCheck, LastStepOfAKilledRunMayBeCut) {
  Trace trace = tiny_trace();
  trace.rows.pop_back();
  trace.events[1].pop_back();
  --trace.batches.back().row_count;
  EXPECT_THAT(failed(trace), ElementsAre("counts"));
  trace.complete = false;
  EXPECT_THAT(failed(trace), IsEmpty());
}

TEST(TraceCheck, FindsRowsThatDisagreeWithThePlanOrTheIndex) {
  Trace trace = tiny_trace();
  trace.rows[2].lane = plan::Lane::copy;
  EXPECT_THAT(failed(trace), ElementsAre("ops"));
  trace = tiny_trace();
  trace.rows[2].rank = 1;
  EXPECT_THAT(failed(trace), ElementsAre("index"));
}

TEST(TraceCheck, FindsMoreLiveMemoryThanTheArenaHas) {
  Trace trace = tiny_trace();
  trace.memory[0].bytes[0] = trace.plan.arena_bytes + 1;
  EXPECT_THAT(failed(trace), ElementsAre("memory"));
}

}  // namespace
}  // namespace foreshard::trace
