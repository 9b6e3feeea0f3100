#include "trace/comparison.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "tiny_run.hpp"
#include "trace/divergence.hpp"

namespace foreshard::trace {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

Trace tiny_trace(Kind kind, const plan::Plan& plan = tiny_plan()) {
  const TemporaryFolder folder;
  write_tiny(folder.file("t.h5"), 2, 3, kind, plan);
  return read(folder.file("t.h5"));
}

const TimeRow& row(const std::vector<TimeRow>& rows, const std::string& name) {
  for (const TimeRow& candidate : rows)
    if (candidate.name == name) return candidate;
  throw std::out_of_range(name);
}

void scale_steps(Trace& trace, double factor) {
  for (StepRow& step : trace.steps)
    step.duration_ns = static_cast<std::int64_t>(static_cast<double>(step.duration_ns) * factor);
}

TEST(Comparison, EqualTracesHold) {
  const Comparison same = compare(tiny_trace(Kind::measured), tiny_trace(Kind::predicted), 0, 1);
  EXPECT_THAT(same.faults(), IsEmpty());
  EXPECT_DOUBLE_EQ(same.step.measured_s, 500e-9);
  EXPECT_EQ(same.step.error(), 0);
  EXPECT_DOUBLE_EQ(row(same.phases, "exposed communication").predicted_s, 200e-9);
  EXPECT_DOUBLE_EQ(row(same.phases, "backward").measured_s, 100e-9);
  EXPECT_EQ(row(same.kinds, "all_gather").measured_bytes, 512);
  EXPECT_EQ(row(same.kinds, "linear").measured_bytes, 384);
  EXPECT_EQ(same.kinds.size(), 5u);
  EXPECT_THAT(text_of(same), AllOf(HasSubstr("the prediction holds"), HasSubstr("arena bytes")));
}

TEST(Comparison, StepTimeIsJudgedByTheTolerance) {
  Trace predicted = tiny_trace(Kind::predicted);
  scale_steps(predicted, 1.08);
  const Trace measured = tiny_trace(Kind::measured);
  EXPECT_THAT(compare(measured, predicted, 0.10, 1).faults(), IsEmpty());
  EXPECT_NEAR(compare(measured, predicted, 0.10, 1).step.error(), 0.08, 1e-12);
  EXPECT_THAT(compare(measured, predicted, 0.05, 1).faults(), ElementsAre(HasSubstr("step time is off by +8.0 %")));
}

TEST(Comparison, WarmUpDoesNotCount) {
  Trace measured = tiny_trace(Kind::measured);
  for (StepRow& step : measured.steps)
    if (step.step == 1) step.duration_ns = 1'000'000;
  for (StepRow& step : measured.steps)
    if (step.step == 2) step.duration_ns = 700;
  EXPECT_DOUBLE_EQ(compare(measured, tiny_trace(Kind::predicted), 0.1, 1).step.measured_s, 600e-9);
  EXPECT_DOUBLE_EQ(compare(measured, tiny_trace(Kind::predicted), 0.1, 0).step.measured_s, 700e-9);
}

TEST(Comparison, AnyDifferenceInArenaOrCollectivesIsAFault) {
  const Trace predicted = tiny_trace(Kind::predicted);
  Trace measured = tiny_trace(Kind::measured);
  measured.summary->arena_bytes += 1;
  measured.summary->rss_bytes += 5;  // only shown
  measured.summary->collectives.all_gather.received_bytes -= 1;
  measured.summary->collectives.all_reduce.count = 3;
  EXPECT_THAT(compare(measured, predicted, 0.1, 1).faults(),
              ElementsAre(HasSubstr("arena bytes"), HasSubstr("all_gather received bytes: predicted 512, measured 511"),
                          HasSubstr("all_reduce count: predicted 0, measured 3")));
}

TEST(Comparison, TracesWithoutStepsOrTotalsAreRefused) {
  const Trace predicted = tiny_trace(Kind::predicted);
  Trace measured = tiny_trace(Kind::measured);
  measured.summary.reset();
  EXPECT_THROW(compare(measured, predicted, 0.1, 1), InputError);
  measured = tiny_trace(Kind::measured);
  measured.steps.clear();
  EXPECT_THROW(compare(measured, predicted, 0.1, 1), InputError);
}

TEST(Comparison, DifferentPlansAreNamedAndNotCompared) {
  plan::Plan other = tiny_plan();
  other.ops[2].kind = plan::OpKind::gelu;
  const Comparison result = compare(tiny_trace(Kind::measured), tiny_trace(Kind::predicted, other), 0.1, 1);
  ASSERT_THAT(result.faults(), ElementsAre(AllOf(HasSubstr("segment only, position 2"),
                                                 HasSubstr("measured has linear_weight_grad root"),
                                                 HasSubstr("predicted has gelu root"))));
  EXPECT_FALSE(json_of(result)["holds"]);
  EXPECT_FALSE(json_of(result).contains("step"));
}

TEST(Comparison, JsonHasThePathsThatScriptsRead) {
  const auto json = json_of(compare(tiny_trace(Kind::measured), tiny_trace(Kind::predicted), 0.1, 1));
  EXPECT_TRUE(json["holds"]);
  EXPECT_DOUBLE_EQ(json["step"]["measured_s"], 500e-9);
  EXPECT_EQ(json["exact"][0]["name"], "arena bytes");
  EXPECT_EQ(json["exact"][0]["measured"], tiny_plan().arena_bytes);
}

std::string divergence(void (*change)(plan::Plan&)) {
  plan::Plan other = tiny_plan();
  change(other);
  return first_divergence(tiny_plan(), other, "a", "b").value_or("none");
}

TEST(Divergence, NamesTheFirstPlace) {
  using plan::Plan;
  EXPECT_EQ(divergence([](Plan&) {}), "none");
  EXPECT_THAT(divergence([](Plan& p) { p.mesh.inner = 4; }), HasSubstr("shape"));
  EXPECT_THAT(divergence([](Plan& p) { p.segments.pop_back(); }),
              AllOf(HasSubstr("segments"), HasSubstr("b has only")));
  EXPECT_THAT(divergence([](Plan& p) {
                p.ops[1].unit = plan::UnitId::none();
                p.ops[3].kind = plan::OpKind::all_reduce;
              }),
              AllOf(HasSubstr("position 1"), HasSubstr("a has linear root"), HasSubstr("b has linear -")));
  EXPECT_THAT(divergence([](Plan& p) { p.ops[3].lane = plan::Lane::gather; }), HasSubstr("lane gather"));
  EXPECT_THAT(divergence([](Plan& p) { p.ops[1].sizes.cols = 9; }), HasSubstr("cols 9"));
  EXPECT_THAT(divergence([](Plan& p) { p.waits[1].index = 1; }),
              AllOf(HasSubstr("position 3"), HasSubstr("waits for op 2"), HasSubstr("op 1")));
  EXPECT_THAT(divergence([](Plan& p) { p.operands[2].offset_bytes = 64; }), HasSubstr("operands"));
  EXPECT_THAT(divergence([](Plan& p) { p.segments[1].op_count = 0; }),
              AllOf(HasSubstr("segment update, position 0"), HasSubstr("b has the segment's end")));
  EXPECT_THAT(divergence([](Plan& p) { p.buffers[2].offset_bytes += 64; }),
              AllOf(HasSubstr("memory: buffer 2"), HasSubstr("offset 1536"), HasSubstr("offset 1600")));
  EXPECT_THAT(divergence([](Plan& p) { p.arena_bytes += 64; }), HasSubstr("memory: arena"));
}

}  // namespace
}  // namespace foreshard::trace
