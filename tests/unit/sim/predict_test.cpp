#include "sim/predict.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "model/gpt.hpp"
#include "plan/build.hpp"
#include "sim/report.hpp"

namespace foreshard::sim {
namespace {

using plan::Lane;

struct Case {
  model::GptConfig model{.layers = 3, .width = 48, .heads = 4, .vocab_size = 100, .max_seq_len = 32};
  model::BatchShape batch{.batch = 2, .seq = 32};
  plan::ScheduleOptions schedule;
};

plan::Plan plan_of(const Case& c, int shard_degree) {
  return plan::build_plan(model::build_gpt(c.model, c.batch), {1, 1, shard_degree}, c.schedule);
}

TEST(Predict, LanesNeverWorkMoreThanTheStepAndTheLastOpEndsIt) {
  const plan::Plan plan = plan_of({}, 4);
  const Prediction prediction = predict(plan, generic_machine(8), {4, 1});
  EXPECT_GT(prediction.lane_busy_s[static_cast<std::size_t>(Lane::compute)], 0);
  EXPECT_GT(prediction.lane_busy_s[static_cast<std::size_t>(Lane::gather)], 0);
  for (const double busy : prediction.lane_busy_s) EXPECT_LE(busy, prediction.step_time_s);
  std::int64_t end = 0;
  for (const auto& event : prediction.simulation.events) end = std::max(end, event.start_ns + event.duration_ns);
  EXPECT_EQ(end, prediction.simulation.step_ns);
  EXPECT_EQ(prediction.simulation.events.size(), plan.ops.size());
}

// By hand: N = 100·48 + 32·48 (tables) + 3·(12·48² + 13·48) (blocks) + 2·48 (last norm) = 91,248.
// Attention 12·3·48·32 = 55,296 per token; 64 tokens.
TEST(Predict, CountsUsefulWorkAsPublished) {
  const plan::Plan plan = plan_of({}, 2);
  ASSERT_EQ(plan.parameters, 91'248);
  EXPECT_DOUBLE_EQ(model_flops(plan), (6.0 * 91'248 + 55'296) * 64);
  Case twice;
  twice.schedule.micro_batches = 2;
  EXPECT_DOUBLE_EQ(model_flops(plan_of(twice, 2)), 2 * model_flops(plan));
}

// N units besides the root: N + (N − 1) gathers of blocks and 1 of the root; N + 1 reduce-scatters; sums of loss and
// norm.
TEST(Predict, CountsCollectives) {
  const Prediction prediction = predict(plan_of({}, 2), generic_machine(2), {2, 1});
  EXPECT_EQ(prediction.collectives.all_gather.count, 4U + 3U);
  EXPECT_EQ(prediction.collectives.reduce_scatter.count, 4U);
  EXPECT_EQ(prediction.collectives.all_reduce.count, 2U);
}

TEST(Predict, ThePeakIsMadeOfItsClassesAndFitsTheArena) {
  const plan::Plan plan = plan_of({}, 2);
  const Prediction prediction = predict(plan, generic_machine(2), {2, 1});
  std::int64_t persistent = 0;
  for (const plan::Buffer& buffer : plan.buffers) persistent += buffer.persistent ? buffer.size_bytes : 0;
  EXPECT_GT(prediction.peak.total(), persistent);
  EXPECT_LE(prediction.peak.total(), prediction.arena_bytes);
  EXPECT_EQ(prediction.arena_bytes, plan.arena_bytes);
  EXPECT_TRUE(prediction.peak_op.valid());
}

/// Copies run on a lane of their own, at 10 GB/s on the generic machine; the host's arena is resident too.
TEST(Predict, CopiesToTheHostHaveTheirOwnLaneAndArena) {
  Case c;
  c.schedule.offload = {.parameters = true, .gradients = true, .optimizer = true};
  const plan::Plan plan = plan_of(c, 2);
  Machine machine = generic_machine(2);
  machine.kernel_floor_s.value = 0;
  const Prediction prediction = predict(plan, machine, {2, 2});
  double elements = 0;
  for (const plan::Segment* segment : plan.sequence())
    for (const plan::Op& op : plan.ops_of(*segment))
      if (op.lane == Lane::copy) elements += static_cast<double>(op.sizes.rows);
  EXPECT_GT(elements, 0);
  EXPECT_GE(prediction.lane_busy_s[static_cast<std::size_t>(Lane::copy)], elements * 0.4e-3 / (1 << 20) * 0.99);
  std::int64_t host = 0;
  for (const plan::Buffer& buffer : plan.buffers) host += buffer.space == plan::Space::host ? buffer.size_bytes : 0;
  EXPECT_EQ(prediction.host_arena_bytes, host);
  EXPECT_EQ(prediction.rss_bytes, plan.arena_bytes + host + prediction.process_base_bytes);
}

TEST(Predict, MicroBatchesCostTheSameEach) {
  Case many, more;
  many.schedule.micro_batches = 100;
  more.schedule.micro_batches = 200;
  const Machine machine = generic_machine(4);
  const auto of = [&](const Case& c) { return predict(plan_of(c, 2), machine, {2, 1}); };
  const Prediction hundred = of(many), two_hundred = of(more);
  EXPECT_NEAR(two_hundred.step_time_s / hundred.step_time_s, 2, 0.05);
  const auto compute = static_cast<std::size_t>(Lane::compute);
  EXPECT_NEAR(two_hundred.exposed_comm_s / hundred.exposed_comm_s, 2, 0.05);
  EXPECT_NEAR(two_hundred.lane_busy_s[compute] / hundred.lane_busy_s[compute], 2, 0.05);
}

// Two ranks on each core instead of one: every kernel takes twice as long.
TEST(Predict, OversubscribedRanksTakeTurns) {
  Machine machine = generic_machine(2);
  machine.handover_next_s.value = machine.handover_wake_s.value = 0;
  const plan::Plan plan = plan_of({}, 4);
  const double alone = predict(plan, machine, {2, 1}).lane_busy_s[0];
  EXPECT_NEAR(predict(plan, machine, {4, 1}).lane_busy_s[0] / alone, 2, 0.3);
}

TEST(Predict, RanksPerNodeFollowCalibration) {
  Machine machine = generic_machine(2);
  EXPECT_EQ(ranks_per_node(machine, 1), 1);
  EXPECT_EQ(ranks_per_node(machine, 512), 2);
  machine.collectives.push_back({OpKind::all_gather, 4, {{1024, 1e-6}}, "measured"});
  EXPECT_EQ(ranks_per_node(machine, 512), 4);
}

TEST(Report, JsonHasTheAgreedKeys) {
  const plan::Plan plan = plan_of({}, 2);
  const Machine machine = generic_machine(2);
  const Prediction prediction = predict(plan, machine, {2, 1});
  const auto json = nlohmann::json::parse(report_json(prediction, {plan, machine, {2, 1}}));
  EXPECT_EQ(json.at("parameters"), 91'248);
  EXPECT_EQ(json.at("world_size"), 2);
  EXPECT_EQ(json.at("shard_degree"), 2);
  EXPECT_EQ(json.at("arena_bytes"), plan.arena_bytes);
  EXPECT_EQ(json.at("step_time_s"), prediction.step_time_s);
  EXPECT_EQ(json.at("tflops_per_device"), prediction.tflops_per_device);
  EXPECT_EQ(json.at("exposed_comm_s"), prediction.exposed_comm_s);
  EXPECT_EQ(json.at("collectives").at("all_gather").at("count"), 7);
  EXPECT_GT(json.at("collectives").at("all_gather").at("bytes"), 0);
  EXPECT_EQ(json.at("plan_hash").get<std::string>().size(), 16U);
}

}  // namespace
}  // namespace foreshard::sim
