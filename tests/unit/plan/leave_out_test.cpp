// Steps that use only part of the parameters: a plan that leaves a block out is the plan of a model without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tuple>

#include "plan/partial_steps.hpp"
#include "plan/query.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

using testing::HasSubstr;

using OpFacts = std::tuple<OpKind, Lane, Phase, std::int64_t, std::int64_t, std::int64_t, double>;

std::vector<OpFacts> facts_of(const Plan& plan) {
  std::vector<OpFacts> facts;
  for (const Op& op : plan.ops)
    facts.emplace_back(op.kind, op.lane, op.phase, op.sizes.rows, op.sizes.cols, op.sizes.inner, op.wire_bytes);
  return facts;
}

ScheduleOptions leaving(std::vector<std::string> blocks, ScheduleOptions options = {}) {
  options.left_out.blocks = std::move(blocks);
  return options;
}

TEST(LeaveOut, OfABlockIsThePlanOfAModelWithoutIt) {
  for (const Mesh mesh : {Mesh{1, 1, 4}, Mesh{2, 1, 2}, Mesh{1, 2, 2}, Mesh{4, 1, 1}, Mesh{}})
    for (const char* block : {"h.0", "h.1", "h.3"})
      EXPECT_EQ(facts_of(build_plan(tiny_graph(4), mesh, leaving({block}))),
                facts_of(build_plan(tiny_graph(3), mesh, {})))
          << block;
}

TEST(LeaveOut, OfSeveralBlocksToo) {
  const ScheduleOptions options{.micro_batches = 3};
  EXPECT_EQ(facts_of(tiny_plan(leaving({"h.1", "h.2"}, options))), facts_of(tiny_plan(options, 8, 1, 2)));
  EXPECT_EQ(facts_of(tiny_plan(leaving({"h.0", "h.1", "h.3"}, options))), facts_of(tiny_plan(options, 8, 1, 1)));
}

TEST(LeaveOut, KeepsWhatPersistsInItsPlace) {
  const Plan whole = tiny_plan({}), part = tiny_plan(leaving({"h.1"}));
  for (std::size_t i = 0; i < whole.buffers.size() && whole.buffers[i].persistent; ++i) {
    EXPECT_EQ(whole.buffers[i].offset_bytes, part.buffers[i].offset_bytes);
    EXPECT_EQ(whole.buffers[i].size_bytes, part.buffers[i].size_bytes);
  }
  EXPECT_LE(part.arena_bytes, whole.arena_bytes);
}

std::vector<std::string> units_of(const Plan& plan, OpKind kind) {
  std::vector<std::string> names;
  for (const Op& op : plan.ops)
    if (op.kind == kind) names.push_back(plan.unit_names[op.unit.value]);
  return names;
}

TEST(LeaveOut, OfAFrozenUnitGathersButNeitherReducesNorUpdates) {
  ScheduleOptions options;
  options.left_out.frozen = {"h.2.*"};
  const Plan plan = tiny_plan(options);
  EXPECT_THAT(units_of(plan, OpKind::all_gather), testing::Contains("u2").Times(2)) << "its input has a gradient";
  EXPECT_THAT(units_of(plan, OpKind::reduce_scatter), testing::UnorderedElementsAre("root", "u0", "u1", "u3"));
  EXPECT_THAT(units_of(plan, OpKind::adamw), testing::UnorderedElementsAre("root", "u0", "u1", "u3"));
  EXPECT_THAT(units_of(plan, OpKind::grad_norm), testing::UnorderedElementsAre("root", "u0", "u1", "u3"));
}

TEST(LeaveOut, OfPartOfAUnitZeroesIdleGradientsOncePerStep) {
  ScheduleOptions options{.micro_batches = 3};
  options.left_out.frozen = {"h.2.mlp.*"};
  for (const Mesh mesh : {Mesh{1, 1, 8}, Mesh{}}) {
    const Plan plan = build_plan(tiny_graph(), mesh, options);
    const FlatParameter& unit = plan.units[3];
    std::int64_t idle = 0;
    for (const FlatPiece& piece : unit.pieces) idle += piece.idle ? piece.elements : 0;
    EXPECT_EQ(idle, 2 * 4 * 16 * 16 + 5 * 16);
    for (const Segment& segment : plan.segments) {
      std::int64_t zeroed = 0;
      for (const Op& op : plan.ops_of(segment))
        if (op.kind == OpKind::zero_fill && op.phase == Phase::backward && op.unit == UnitId{3})
          zeroed += op.sizes.rows;
      const bool adds_up = mesh.world_size() == 1 && segment.name != Segment::Name::first;
      const std::int64_t padding =
          mesh.world_size() == 1 ? 0 : unit.trainable.padded_elements - unit.trainable.elements;
      EXPECT_EQ(zeroed, adds_up || segment.name == Segment::Name::update ? 0 : idle + padding) << name_of(segment.name);
    }
  }
}

TEST(PartialSteps, HaveAsManyKindsAsThereAreThingsToLeaveOut) {
  EXPECT_EQ(PartialSteps{}.kinds().size(), 1U);
  EXPECT_EQ((PartialSteps{.blocks = {"h.1"}}.kinds().size()), 2U);
  EXPECT_EQ((PartialSteps{.blocks = {"h.1"}, .frozen = {"wte.*"}, .frozen_steps = 3}.kinds().size()), 4U);
}

TEST(PartialSteps, CountTheStepsOfEachKind) {
  const PartialSteps none{}, skip{.blocks = {"a"}, .every = 3}, freeze{.frozen = {"b"}, .frozen_steps = 7},
      both{.blocks = {"a"}, .every = 3, .frozen = {"b"}, .frozen_steps = 7};
  for (const PartialSteps& steps : {none, skip, freeze, both}) {
    std::vector<std::int64_t> counts(steps.kinds().size());
    for (std::int64_t step = 1; step <= 20; ++step) {
      ++counts[steps.kind_of(step)];
      EXPECT_EQ(steps.count(step), counts) << step;
      const LeftOut what = steps.kinds()[steps.kind_of(step)];
      EXPECT_EQ(!what.blocks.empty(), !steps.blocks.empty() && step % 3 == 0) << step;
      EXPECT_EQ(!what.frozen.empty(), !steps.frozen.empty() && step <= 7) << step;
    }
  }
}

TEST(PartialSteps, ThatDoNotFitTheModelAreNamed) {
  EXPECT_THAT(problems(tiny_graph(), {}, {.blocks = {"h.4"}}),
              testing::ElementsAre(AllOf(HasSubstr("units.skip"), HasSubstr("h.4"), HasSubstr("h.3"))));
  EXPECT_THAT(problems(tiny_graph(), {}, {.frozen = {"*"}, .frozen_steps = 2}),
              testing::ElementsAre(HasSubstr("nothing is left to train")));
}

}  // namespace
}  // namespace foreshard::plan
