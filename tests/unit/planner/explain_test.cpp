#include "sim/planner/explain.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "plan/build.hpp"
#include "sim/planner/remedies.hpp"
#include "sim/planner/run_cost.hpp"
#include "sim/planner/what_if.hpp"

namespace foreshard::sim::planner {
namespace {

using plan::Recompute;

plan::Settings llama(const Point& point) {
  const model::LlamaConfig config{
      .layers = 6, .width = 1024, .heads = 8, .vocab_size = 8000, .max_seq_len = 1024, .ffn_width = 4096};
  return settings_of({.model = config, .batch = {1, 1024}, .mesh = {}, .schedule = {}, .partial = {}}, point);
}

plan::Plan plan_of(const plan::Settings& settings) {
  return plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule);
}

Point on(int gpus) { return {.gpus = gpus, .shard_degree = gpus, .parameters = DType::bf16}; }

TEST(TimeParts, AddUpToTheStep) {
  const Cluster cluster = read_cluster("dgx-a100");
  for (const int micro_batches : {1, 3, 40})
    for (const auto prefetch : {plan::BackwardPrefetch::pre, plan::BackwardPrefetch::none}) {
      Point point = on(64);
      point.micro_batches = micro_batches, point.prefetch = prefetch;
      const plan::Plan plan = plan_of(llama(point));
      const Prediction prediction = predict_on_gpus(plan, cluster);
      const TimeParts parts = time_parts(plan, prediction, cluster);
      EXPECT_NEAR(parts.total(), prediction.step_time_s, 1e-6 * prediction.step_time_s);
      EXPECT_EQ(parts.of(Work::recompute), 0);
      EXPECT_GT(parts.of(Work::backward), parts.of(Work::forward));
      EXPECT_EQ(parts.other_s, 0);
    }
}

TEST(TimeParts, RecomputationIsForwardAgainWithoutTheRoot) {
  const Cluster cluster = read_cluster("dgx-a100");
  Point point = on(8);
  point.recompute = Recompute::Mode::full;
  const plan::Plan plan = plan_of(llama(point));
  const TimeParts parts = time_parts(plan, predict_on_gpus(plan, cluster), cluster);
  EXPECT_GT(parts.of(Work::recompute), 0.6 * parts.of(Work::forward));
  EXPECT_LT(parts.of(Work::recompute), parts.of(Work::forward));
}

/// Without prefetching compute waits for every gather; the waits are no longer than the lane is busy.
TEST(TimeParts, WaitsGrowWithoutPrefetching) {
  const Cluster cluster = read_cluster("dgx-a100");
  const auto gather_wait = [&](plan::BackwardPrefetch prefetch, int forward) {
    Point point = on(64);
    point.prefetch = prefetch, point.forward_prefetch = forward;
    const plan::Plan plan = plan_of(llama(point));
    const Prediction prediction = predict_on_gpus(plan, cluster);
    const double waits = time_parts(plan, prediction, cluster).exposed_s[static_cast<std::size_t>(plan::Lane::gather)];
    EXPECT_LE(waits, prediction.lane_busy_s[static_cast<std::size_t>(plan::Lane::gather)]);
    return waits;
  };
  EXPECT_GT(gather_wait(plan::BackwardPrefetch::none, 0), gather_wait(plan::BackwardPrefetch::pre, 1));
}

TEST(Explain, EffectsArePredictionsOfTheirOwn) {
  const Cluster cluster = read_cluster("dgx-a100");
  const plan::Settings settings = llama(on(16));
  const plan::Plan plan = plan_of(settings);
  const Explanation explanation = explain(settings, plan, predict_on_gpus(plan, cluster), cluster);
  Point full = on(16);
  full.recompute = Recompute::Mode::full;
  const Prediction recomputed = predict_on_gpus(plan_of(llama(full)), cluster);
  const auto effect = std::ranges::find(explanation.effects, "activation_checkpoint.mode=full", &Effect::change);
  ASSERT_NE(effect, explanation.effects.end());
  EXPECT_EQ(effect->step_s, recomputed.step_time_s);
  EXPECT_EQ(effect->memory_bytes, recomputed.arena_bytes + recomputed.process_base_bytes);
  const std::string text = explanation_text(explanation, settings, plan);
  for (const char* part : {"forward", "waiting for gather", "all_gather", "TFLOP/s", "activation_checkpoint.mode=full"})
    EXPECT_THAT(text, testing::HasSubstr(part));
  EXPECT_EQ(explanation_json(explanation)["effects"].size(), explanation.effects.size());
}

TEST(Points, SettingsAndPointsSayTheSame) {
  Point point = on(16);
  point.strategy = Strategy::hybrid_shard, point.shard_degree = 8, point.reshard = 4, point.reduce_limit = 1;
  point.accumulation = plan::Accumulation::reduce_scatter, point.micro_batches = 3, point.offload.optimizer = true;
  EXPECT_EQ(point_of(llama(point)), point);
  for (const Strategy strategy : {Strategy::full_shard, Strategy::shard_grad_op, Strategy::no_shard}) {
    Point other = on(16);
    other.strategy = strategy;
    if (strategy == Strategy::no_shard) other.shard_degree = 1;
    EXPECT_EQ(point_of(llama(other)), other);
  }
}

/// Half of a micro-batch alone would be half of the step.
TEST(Remedies, SayWhatTheGlobalBatchIsWhereItIsDealtOtherwise) {
  const Point two{.gpus = 8, .shard_degree = 8, .local_batch = 2};
  Point one = two;
  one.local_batch = 1, one.micro_batches = 2;
  EXPECT_EQ(changes(two, one), "train.local_batch_size=1 train.global_batch_size=16");
  one = two;
  one.recompute = plan::Recompute::Mode::full;
  EXPECT_EQ(changes(two, one), "activation_checkpoint.mode=full");
}

TEST(Remedies, KeepTheGlobalBatchAndChangeOneDecision) {
  Point point = on(8);
  point.local_batch = 6, point.micro_batches = 2, point.strategy = Strategy::shard_grad_op;
  for (const auto& others : {thriftier(point, 0), faster(point, 4)}) {
    EXPECT_GT(others.size(), 2U);
    for (const Point& other : others) {
      EXPECT_EQ(other.local_batch * other.micro_batches * other.gpus, 96);
      EXPECT_FALSE(changes(point, other).empty());
    }
  }
}

TEST(Remedies, AreTheFewestChangesThatFit) {
  const Cluster cluster = read_cluster("dgx-a100");
  const plan::Settings base = llama(on(8));
  TrainingGraphs graphs(base);
  OwnRuntime runtime(base, cluster, graphs);
  Point point = on(8);
  point.local_batch = 8;
  const std::int64_t needed = runtime.evaluate(point).memory_bytes;
  const auto one = remedies(point, needed - 1, 8, runtime);
  ASSERT_FALSE(one.empty());
  EXPECT_EQ(changes(point, one.front().point).find(' '), std::string::npos);
  for (const Remedy& remedy : one) {
    EXPECT_LT(remedy.found.memory_bytes, needed);
    EXPECT_GE(remedy.found.step_s, one.front().found.step_s);
  }
  EXPECT_TRUE(remedies(point, 1, 8, runtime).empty());
}

/// Fits by every change; recomputation is fastest, but with retries.
class WithRetries final : public Evaluator {
 public:
  Evaluation evaluate(const Point& point) override {
    if (point == on(8)) return {.step_s = 1, .memory_bytes = 100};
    const bool recomputes = point.recompute != Recompute::Mode::none;
    return {.step_s = recomputes ? 1.0 : 2.0, .memory_bytes = 10, .retries = recomputes ? 3 : 0};
  }
  Bound bound(const Point&) override { return {}; }
};

TEST(Remedies, SayThatTheyRetryAndComeAfterThoseThatDoNot) {
  WithRetries evaluator;
  const auto found = remedies(on(8), 50, 8, evaluator);
  ASSERT_GT(found.size(), 1U);
  EXPECT_EQ(found.front().found.retries, 0);
  EXPECT_EQ(found.back().found.retries, 3);
  const Remedy retrying{found.back().point, {.step_s = 1, .memory_bytes = 10, .retries = 3}};
  EXPECT_THAT(text_of(on(8), retrying),
              testing::HasSubstr("10 B, 1.0 s a step; only with 3 allocation retries a step)"));
  EXPECT_THAT(text_of(on(8), found.front()), testing::EndsWith("(10 B, 2.0 s a step)"));
}

TEST(RunCost, CountsStepsDaysAndGpuHours) {
  // 15e12 tokens in steps of 4e6, 10 s each, on 1024 GPUs; failures as in Kokolis et al.: 2.34 to 6.50 of 1,000
  // node-days
  const RunCost cost = run_cost({.tokens = 15e12, .gpu_hour_price = 2}, 10, 4e6, 1024);
  EXPECT_EQ(cost.steps, 3.75e6);
  EXPECT_NEAR(cost.days(), 434.0278, 1e-3);
  EXPECT_NEAR(cost.gpu_hours, 434.0278 * 24 * 1024, 10);
  EXPECT_NEAR(cost.price, 2 * cost.gpu_hours, 1e-6);
  EXPECT_NEAR(cost.failures_most, 6.5 * 434.0278 * 128 / 1000, 1e-3);
}

TEST(RunCost, ReadsNumbersOfTokens) {
  EXPECT_EQ(parse_tokens("300B"), 300e9);
  EXPECT_EQ(parse_tokens("1.4T"), 1.4e12);
  EXPECT_EQ(parse_tokens("2e12"), 2e12);
  for (const char* bad : {"", "T", "-1B", "0", "3X", "3BB", "nan", "inf"}) EXPECT_FALSE(parse_tokens(bad)) << bad;
}

Config some_keys() {
  Config config("test");
  config.add("parallel.limit", "2", "");
  config.add("json", false, "");
  return config;
}

TEST(WhatIf, ReadsAKeyAndItsValues) {
  const WhatIf asked = read_what_if(some_keys(), "parallel.limit= 2, 3,unlimited");
  EXPECT_EQ(asked.key, "parallel.limit");
  EXPECT_THAT(asked.values, testing::ElementsAre("2", "3", "unlimited"));
  for (const char* bad : {"parallel.limits=2", "parallel.limit", "parallel.limit=", "json=true", "=2"})
    EXPECT_THROW(read_what_if(some_keys(), bad), InputError) << bad;
}

TEST(WhatIf, ShowsDifferencesAndWhatCannotBe) {
  const auto predict = [](const std::string& flag) {
    if (flag == "--parallel.limit=x") throw InputError(ExitCode::usage, "no such limit");
    Prediction prediction;
    prediction.step_time_s = flag.empty() ? 2 : 3;
    return prediction;
  };
  const std::string text = what_if_report({"parallel.limit", {"3", "x"}}, "2", predict, false);
  EXPECT_THAT(text, testing::HasSubstr("+50.0 %"));
  EXPECT_THAT(text, testing::HasSubstr("no such limit"));
  const auto json = nlohmann::json::parse(what_if_report({"parallel.limit", {"3", "x"}}, "2", predict, true));
  EXPECT_EQ(json["values"][1]["step_time_s"], 3.0);
  EXPECT_EQ(json["values"][2]["refused"], "no such limit");
}

}  // namespace
}  // namespace foreshard::sim::planner
