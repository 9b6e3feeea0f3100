#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "plan/print.hpp"
#include "plan/query.hpp"
#include "timing_oracle.hpp"
#include "tiny.hpp"

namespace foreshard::plan {
namespace {

struct RandomPlan {
  explicit RandomPlan(unsigned seed) : random(seed) {
    options = {.prefetch = static_cast<BackwardPrefetch>(pick(0, 2)),
               .prefetch_depth = pick(1, 3),
               .forward_prefetch = pick(0, 3)};
    options.gather_limit = pick(0, 3) == 0 ? unlimited : pick(1, 4);
    options.reduce_limit = pick(0, 3) == 0 ? unlimited : pick(1, 3);
    options.micro_batches = pick(1, 4);
    options.keep = static_cast<Keep>(pick(0, 2));
    options.accumulation = static_cast<Accumulation>(pick(0, 2));
    for (int unit = pick(0, 5); unit > 0; --unit) options.keep_of_unit.push_back(static_cast<Keep>(pick(0, 2)));
    options.wrap = pick_wrap();
    if (pick(0, 3) == 0) options.gather_limit_bytes = pick(1, 20000);
    options.precision = {random_type(), random_type(), random_type()};
    for (int unit = pick(0, 5); unit > 0; --unit)
      options.precision_of_unit.push_back({random_type(), random_type(), random_type()});
    options.recompute.mode = static_cast<Recompute::Mode>(pick(0, 2));
    options.recompute.every = pick(1, 2);
    if (pick(0, 1) == 0) options.offload = {pick(0, 1) == 0, pick(0, 1) == 0, pick(0, 1) == 0};
    constexpr OpKind updates[] = {OpKind::adamw, OpKind::sgd, OpKind::sgd_momentum};
    if (pick(0, 2) == 0) options.update = updates[pick(0, 2)];
    mesh = {pick(0, 1) == 0 ? 1 : pick(1, 5), pick(0, 2) == 0 ? pick(2, 3) : 1, pick(1, 9)};
    const int heads = pick(1, 3);
    model = {.layers = pick(1, 4),
             .width = heads * pick(1, 7),
             .heads = heads,
             .vocab_size = pick(2, 40),
             .max_seq_len = 8,
             .tied_head = pick(0, 1) == 1};
    model.dropout = pick(0, 2) == 0 ? 0.1 : 0;
    plan = build_plan(model::build_gpt(model, {pick(1, 3), pick(1, 8)}), mesh, options);
  }
  std::optional<DType> random_type() {
    constexpr std::optional<DType> types[] = {std::nullopt, std::nullopt, std::nullopt, DType::bf16, DType::f16};
    return types[pick(0, 4)];
  }
  /// Half of them the model's own units; else any policy, with some parameters frozen, ignored or kept otherwise.
  Wrap pick_wrap() {
    Wrap wrap;
    if (pick(0, 1) == 0) return wrap;
    wrap.policy = static_cast<Wrap::Policy>(pick(0, 5));
    wrap.count = wrap.policy == Wrap::Policy::size ? pick(1, 3000) : pick(1, 3);
    wrap.names = {"attn", "mlp", "h.0.mlp", "h.0", "wte"};
    if (pick(0, 1) == 0) wrap.names.push_back("block");
    const std::vector<std::string> globs{"h.0.*", "h.*.bias", "w?e.*", "*.mlp.c_fc.*", "h.*.ln_1.*", "ln_f.*"};
    const auto glob = [&] { return globs[static_cast<std::size_t>(pick(0, 5))]; };
    if (pick(0, 2) == 0) wrap.frozen = {glob(), glob()};
    if (pick(0, 2) == 0) wrap.ignored = {glob()};
    if (pick(0, 2) == 0) wrap.overrides = {{glob(), static_cast<Keep>(pick(0, 2)), pick(0, 1) == 0}};
    return wrap;
  }
  int pick(int from, int to) { return std::uniform_int_distribution(from, to)(random); }

  std::mt19937 random;
  ScheduleOptions options;
  Mesh mesh;
  model::GptConfig model;
  Plan plan;
};

class RandomPlans : public testing::TestWithParam<unsigned> {};

TEST_P(RandomPlans, NoTwoLiveBuffersShareBytes) {
  const RandomPlan random(GetParam());
  EXPECT_THAT(TimingOracle(random.plan).overlaps(), testing::IsEmpty()) << order_text(random.plan);
}

TEST_P(RandomPlans, WaitsSayAllThatTheDataAsksFor) {
  const RandomPlan random(GetParam());
  EXPECT_THAT(TimingOracle(random.plan, 1).hazards(), testing::IsEmpty()) << order_text(random.plan);
}

TEST_P(RandomPlans, EveryBufferLiesInItsArena) {
  const RandomPlan random(GetParam());
  std::array<std::int64_t, space_count> tops{};
  for (const Buffer& buffer : random.plan.buffers) {
    EXPECT_GE(buffer.offset_bytes, 0);
    EXPECT_EQ(buffer.offset_bytes % 64, 0);
    std::int64_t& top = tops[static_cast<std::size_t>(buffer.space)];
    top = std::max(top, buffer.offset_bytes + buffer.size_bytes);
  }
  EXPECT_EQ(tops[0], random.plan.arena_bytes);
  EXPECT_EQ(tops[1], random.plan.host_arena_bytes);
  EXPECT_GE(random.plan.arena_bytes, memory_lower_bound(random.plan));
}

TEST_P(RandomPlans, WaitsPointBackwards) {
  const RandomPlan random(GetParam());
  for (const Segment& segment : random.plan.segments)
    for (std::uint32_t id = segment.first_op; id < segment.first_op + segment.op_count; ++id)
      for (const Wait& wait : random.plan.waits_of(random.plan.ops[id]))
        if (wait.on == Wait::On::op) {
          EXPECT_LT(wait.index, id);
          EXPECT_GE(wait.index, segment.first_op);
        }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlans, testing::Range(0U, 400U));

TEST(Placement, TheOracleFindsAnOverlap) {
  Plan plan = tiny_plan({});
  ASSERT_THAT(TimingOracle(plan).overlaps(), testing::IsEmpty());
  const Op& first_gather = plan.ops[find(plan, plan.segments.front(), {.kind = OpKind::all_gather}).front().value];
  plan.buffers[plan.outputs(first_gather)[0].buffer.value].offset_bytes =
      plan.buffers[plan.units[0].parameter_shard.value].offset_bytes;
  EXPECT_THAT(TimingOracle(plan).overlaps(), testing::Not(testing::IsEmpty()));
}

TEST(Placement, PutsTheWorkspaceAtTheBottomAndMovesTheRestUp) {
  ScheduleOptions options = free_options();
  const Plan without = tiny_plan(options);
  options.workspace_bytes = 1 << 20;
  const Plan with = tiny_plan(options), evaluation = build_evaluation_plan(tiny_graph(), {1, 1, 8}, options);
  EXPECT_FALSE(without.workspace.valid());
  EXPECT_EQ(with.arena_bytes, without.arena_bytes + (1 << 20));
  for (const Plan* plan : {&with, &evaluation}) {
    const Buffer& workspace = plan->buffers.at(plan->workspace.value);
    EXPECT_EQ(workspace.offset_bytes, 0);
    EXPECT_EQ(workspace.size_bytes, 1 << 20);
    EXPECT_TRUE(workspace.persistent && workspace.memory == MemoryClass::workspace);
  }
  EXPECT_NE(hash_of(with), hash_of(without));
}

TEST(Placement, OfGpt2IsWithinThreePercentOfTheLowerBound) {
  for (const auto* preset : {"gpt2", "gpt2-medium", "gpt2-xl"})
    for (const int world : {1, 2, 8, 512})
      for (const int micro_batches : {1, 4}) {
        ScheduleOptions options;
        options.micro_batches = micro_batches;
        const Plan plan = build_plan(model::build_gpt(model::gpt_preset(preset), {1, 1024}), {1, 1, world}, options);
        const double ratio = static_cast<double>(plan.arena_bytes) / static_cast<double>(memory_lower_bound(plan));
        EXPECT_LE(ratio, 1.03) << preset << " on " << world << " ranks, " << micro_batches << " micro-batches";
        RecordProperty(fmt::format("{}_{}_{}", preset, world, micro_batches), std::to_string(ratio));
      }
}

}  // namespace
}  // namespace foreshard::plan
