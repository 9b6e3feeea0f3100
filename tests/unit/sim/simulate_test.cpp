#include "sim/simulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "exec/run_plan.hpp"
#include "hand_made_plan.hpp"

namespace foreshard::sim {
namespace {

using plan::Lane;
using plan::Segment;
using plan::Wait;
using test::HandMadePlan;
using test::on;

Demand by_rows(const plan::Op& op) { return {op.sizes.rows, 1}; }

void add_micro_batch(HandMadePlan& made, Segment::Name name) {
  made.open(name);
  const auto gather = made.op(Lane::gather, 35, {{Wait::On::freed, 0}});
  const auto use = made.op(Lane::compute, 61, {on(gather)});
  const auto reduce = made.op(Lane::reduce, 170, {on(use)});
  made.op(Lane::compute, 13, {{Wait::On::reduced, 0}});
  made.point(Wait::On::freed, 0, use);
  made.point(Wait::On::reduced, 0, reduce);
}

/// The reduction is the longest, and overlaps the next micro-batch.
HandMadePlan overlapping(int micro_batches) {
  auto made = HandMadePlan::empty(micro_batches);
  for (const auto name : {Segment::Name::first, Segment::Name::middle, Segment::Name::last})
    add_micro_batch(made, name);
  made.open(Segment::Name::update);
  made.op(Lane::compute, 9);
  return made;
}

Simulation in_full(const plan::Plan& plan, double cores) {
  trace::Recorder recorder;
  VirtualExecutor executor(plan, by_rows, cores, {}, recorder);
  exec::run_plan(plan, executor);
  return {.events = recorder.take(), .step_ns = executor.now_ns()};
}

auto key(const trace::Event& event) {
  return std::tuple(event.op, event.micro_batch, event.start_ns, event.duration_ns);
}

// Independent truth: the same step simulated micro-batch by micro-batch.
TEST(Simulate, RepeatingMicroBatchesChangesNothing) {
  for (const double cores : {2.0, 1.0, 0.7})
    for (const int micro_batches : {2, 6, 7, 40}) {
      auto made = overlapping(micro_batches);
      const plan::Plan& plan = made.finish();
      const Simulation full = in_full(plan, cores), short_one = simulate_step(plan, by_rows, cores, {});
      EXPECT_EQ(short_one.step_ns, full.step_ns);
      const auto events = expanded(plan, short_one, short_one.copies);
      ASSERT_EQ(events.size(), full.events.size());
      for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(key(events[i]), key(full.events[i]));
    }
}

TEST(Simulate, ManyMicroBatchesCostNoMoreThanAFew) {
  auto made = overlapping(1'000'000);
  const Simulation simulation = simulate_step(made.finish(), by_rows, 2, {});
  EXPECT_LT(simulation.events.size(), 200U);
  EXPECT_GT(simulation.step_ns, 170'000'000);
}

}  // namespace
}  // namespace foreshard::sim
