#include "sim/planner/bound.hpp"

#include <gtest/gtest.h>

#include <random>

#include "plan/build.hpp"
#include "sim/planner/evaluator.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim::planner {
namespace {

using model::GptConfig;
using model::LlamaConfig;

/// Any plan a search may look at, of a small model.
class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  template <class T>
  T of(std::initializer_list<T> values) {
    return *(values.begin() + pick(0, static_cast<int>(values.size()) - 1));
  }

  model::Config model() {
    switch (pick(0, 5)) {
      case 0:
        return gpt();
      case 1:
        return mpt();
      case 2:
        return t5();
      case 3:
        return vit();
      case 4:
        return profile();
      default:
        return llama();
    }
  }

  model::Config gpt() {
    const int heads = pick(1, 3);
    return GptConfig{.layers = pick(1, 5),
                     .width = 8 * heads,
                     .heads = heads,
                     .vocab_size = pick(2, 300),
                     .max_seq_len = 64,
                     .tied_head = pick(0, 1) == 1};
  }

  /// With heads that share keys, biases and low-rank matrices, or not.
  model::Config llama() {
    const int key_heads = pick(1, 2), heads = key_heads * pick(1, 2);
    LlamaConfig config{.layers = pick(1, 4),
                       .width = 16 * heads,
                       .heads = heads,
                       .vocab_size = pick(2, 300),
                       .max_seq_len = 64,
                       .ffn_width = 8 * pick(1, 9),
                       .kv_heads = key_heads,
                       .tied_head = pick(0, 1) == 1,
                       .qkv_bias = pick(0, 1) == 1};
    if (pick(0, 1) == 0) config.lora = {.rank = pick(1, 4), .targets = static_cast<std::uint8_t>(pick(1, 127))};
    return config;
  }

  /// With a base in four bits.
  model::Config packed() {
    LlamaConfig config = std::get<LlamaConfig>(llama());
    config.lora = {.rank = pick(1, 4),
                   .targets = static_cast<std::uint8_t>(pick(1, 127)),
                   .base = of({model::Packing::nf4, model::Packing::nf4_dq})};
    return config;
  }

  model::Config mpt() {
    const int heads = pick(1, 3);
    const bool positions = pick(0, 1) == 1;
    return model::MptConfig{.layers = pick(1, 4),
                            .width = 8 * heads,
                            .heads = heads,
                            .vocab_size = pick(2, 300),
                            .max_seq_len = 64,
                            .biases = pick(0, 1) == 1,
                            .learned_positions = positions,
                            .alibi_bias_max = positions ? 0.0 : 8.0};
  }

  model::Config t5() {
    return model::T5Config{
        .layers = pick(1, 3),
        .width = 8 * pick(1, 3),
        .heads = pick(1, 3),
        .vocab_size = pick(2, 300),
        .decoder_layers = pick(0, 2),
        .head_width = 8,
        .ffn_width = 8 * pick(1, 5),
        .buckets = 8,
        .tied_head = pick(0, 1) == 1,
        .feed_forward = of({model::T5Config::FeedForward::relu, model::T5Config::FeedForward::gated_gelu})};
  }

  model::Config vit() {
    const int heads = pick(1, 3);
    return model::VitConfig{.layers = pick(1, 4),
                            .width = 8 * heads,
                            .heads = heads,
                            .ffn_width = 8 * pick(1, 5),
                            .patches = pick(2, 30),
                            .patch_values = pick(3, 40),
                            .classes = pick(1, 40)};
  }

  model::Config profile() {
    model::ProfileConfig config{.name = "any"};
    for (int i = pick(1, 4); i >= 0; --i)
      config.units.push_back({.name = std::to_string(i),
                              .parameters = 64 * pick(1, 400),
                              .forward_flops = 1000 * pick(1, 1000),
                              .backward_flops = 1000 * pick(1, 1000),
                              .activation_bytes = 64 * pick(1, 1000),
                              .output_values = 16 * pick(1, 60)});
    config.head = {.name = "head",
                   .parameters = 64 * pick(1, 50),
                   .forward_flops = 1000,
                   .backward_flops = 1000,
                   .activation_bytes = 64,
                   .output_values = pick(1, 40)};
    return config;
  }

  Point point() {
    Point p{.gpus = of({1, 2, 4, 16, 48}), .strategy = static_cast<Strategy>(pick(0, 5))};
    p.shard_degree = is_hybrid(p.strategy) ? (p.gpus > 2 ? p.gpus / 2 : p.gpus) : p.gpus;
    if (p.strategy == Strategy::no_shard) p.shard_degree = 1;
    if (keep_of(p.strategy) == plan::Keep::visit && p.shard_degree % 2 == 0 && p.shard_degree > 2 && pick(0, 1) == 0)
      p.reshard = 2;
    p.prefetch = static_cast<plan::BackwardPrefetch>(pick(0, 2));
    p.prefetch_depth = pick(0, 3), p.forward_prefetch = pick(0, 3);
    p.limit = pick(0, 3) == 0 ? plan::unlimited : pick(1, 4);
    p.reduce_limit = pick(1, 3);
    p.recompute = static_cast<plan::Recompute::Mode>(pick(0, 2));
    p.recompute_every = pick(1, 2);
    p.local_batch = pick(1, 3), p.micro_batches = pick(1, 8);
    p.accumulation = static_cast<plan::Accumulation>(pick(0, is_hybrid(p.strategy) ? 2 : 0));
    if (pick(0, 3) == 0) p.accumulation = plan::Accumulation::no_sync;
    p.parameters = of({DType::f32, DType::bf16});
    p.reduction = pick(0, 1) == 0 ? DType::f32 : p.parameters;
    if (pick(0, 2) == 0) p.offload = {pick(0, 1) == 0, pick(0, 1) == 0, pick(0, 1) == 0};
    return p;
  }

 private:
  std::mt19937 random_;
};

/// A sequence of a family that has no tokens is of one length.
std::int64_t length_for(const model::Config& model, std::int64_t seq) {
  if (const auto* vit = std::get_if<model::VitConfig>(&model)) return vit->tokens();
  return std::holds_alternative<model::ProfileConfig>(model) ? 1 : seq;
}

plan::Settings settings(model::Config model, std::int64_t wanted) {
  const std::int64_t seq = length_for(model, wanted);
  plan::Settings base{.model = std::move(model), .batch = {1, seq}, .mesh = {}, .schedule = {}, .partial = {}};
  return base;
}

std::string command(const Point& point) {
  std::string text;
  for (const auto& [key, value] : keys_of(point)) text += key + "=" + value + " ";
  return text;
}

class RandomPoints : public testing::TestWithParam<unsigned> {};

void expect_bounds_of_points(const plan::Settings& base, Random& random) {
  const Cluster cluster = read_cluster("aws-p5");
  Bounds bounds(base, cluster);
  TrainingGraphs graphs(base);
  OwnRuntime runtime(base, cluster, graphs);
  for (int i = 0; i < 12; ++i) {
    Point point = random.point();
    if (base.schedule.master) point.parameters = *base.schedule.master, point.reduction = DType::f32;
    const Bound bound = bounds.of(point);
    const Evaluation plan = runtime.evaluate(point);
    EXPECT_LE(bound.memory_bytes, plan.memory_bytes) << command(point);
    EXPECT_LE(bound.seconds, plan.step_s * (1 + 1e-9)) << model::family_of(base.model) << " " << command(point);
  }
}

TEST_P(RandomPoints, ABoundIsNoMoreThanThePlanHas) {
  Random random(GetParam());
  const plan::Settings base = settings(random.model(), random.pick(3, 64));
  expect_bounds_of_points(base, random);
}

class RandomPackedPoints : public testing::TestWithParam<unsigned> {};

TEST_P(RandomPackedPoints, ABoundIsNoMoreThanThePlanHas) {
  Random random(3000 + GetParam());
  const plan::Settings base = settings(random.packed(), random.pick(3, 64));
  expect_bounds_of_points(base, random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPackedPoints, testing::Range(0U, 60U));

class RandomPointsInBf16 : public testing::TestWithParam<unsigned> {};

TEST_P(RandomPointsInBf16, ABoundIsNoMoreThanThePlanHas) {
  Random random(4000 + GetParam());
  plan::Settings base = settings(random.model(), random.pick(3, 64));
  base.schedule.master = DType::bf16;
  expect_bounds_of_points(base, random);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPointsInBf16, testing::Range(0U, 60U));

TEST_P(RandomPoints, AnEvaluationIsThePredictionOfTheWholePlan) {
  const Cluster cluster = read_cluster("dgx-a100");
  Random random(1000 + GetParam());
  const plan::Settings base = settings(random.model(), random.pick(3, 64));
  TrainingGraphs graphs(base);
  OwnRuntime runtime(base, cluster, graphs);
  const Point point = random.point();
  const plan::Settings own = settings_of(base, point);
  const Prediction whole =
      predict_on_gpus(plan::build_plan(model::build(own.model, own.batch), own.mesh, own.schedule), cluster);
  const Evaluation evaluation = runtime.evaluate(point);
  EXPECT_EQ(evaluation.step_s, whole.step_time_s) << command(point);
  EXPECT_EQ(evaluation.memory_bytes, whole.arena_bytes + whole.process_base_bytes) << command(point);
}

TEST_P(RandomPoints, CanonicalPointsAreEqualPlans) {
  Random random(2000 + GetParam());
  const plan::Settings base = settings(random.model(), 8);
  const auto plan_of = [&](const Point& point) {
    const plan::Settings own = settings_of(base, point);
    return plan::build_plan(model::build(own.model, own.batch), own.mesh, own.schedule);
  };
  Point point = random.point();
  EXPECT_EQ(plan::hash_of(plan_of(point)), plan::hash_of(plan_of(canonical(point)))) << command(point);
  point.gpus = point.shard_degree = 1, point.reshard = 0;
  EXPECT_EQ(plan::hash_of(plan_of(point)), plan::hash_of(plan_of(canonical(point)))) << command(point);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPoints, testing::Range(0U, 150U));

/// Forward visits are without a gradient, images without tokens; updates and norms of offloaded shards are the host's.
INSTANTIATE_TEST_SUITE_P(OnceTooHigh, RandomPoints, testing::Values(183U, 267U, 330U, 423U, 427U, 436U, 443U, 1047U));

/// Where blocks are large, so that alignment and the small ops around them do not count.
TEST(Bound, IsNearThePlanOfALargeModel) {
  const Cluster cluster = read_cluster("aws-p5");
  const plan::Settings base = settings(model::preset("llama3-8b"), 4096);
  Bounds bounds(base, cluster);
  TrainingGraphs graphs(base);
  OwnRuntime runtime(base, cluster, graphs);
  for (const Strategy strategy : {Strategy::full_shard, Strategy::shard_grad_op})
    for (const auto mode : {plan::Recompute::Mode::none, plan::Recompute::Mode::full})
      for (const int micro_batches : {1, 4}) {
        const Point point{.gpus = 64,
                          .strategy = strategy,
                          .shard_degree = 64,
                          .recompute = mode,
                          .micro_batches = micro_batches,
                          .parameters = DType::bf16};
        const Bound bound = bounds.of(point);
        const Evaluation plan = runtime.evaluate(point);
        EXPECT_GT(static_cast<double>(bound.memory_bytes), 0.93 * static_cast<double>(plan.memory_bytes))
            << command(point);
        EXPECT_GT(bound.seconds, 0.6 * plan.step_s) << command(point);
      }
}

}  // namespace
}  // namespace foreshard::sim::planner
