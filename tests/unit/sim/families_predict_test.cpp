// Steps of families that no kernel computes yet, on processor cores and on GPUs.
#include <gtest/gtest.h>

#include "model/hf_config.hpp"
#include "plan/build.hpp"
#include "sim/predict.hpp"

namespace foreshard::sim {
namespace {

plan::Plan plan_of(const model::Config& model, std::int64_t batch, std::int64_t seq) {
  plan::ScheduleOptions options;
  options.precision.parameters = DType::bf16;
  return plan::build_plan(model::build(model, {batch, seq}), {1, 1, 8}, options);
}

// All keys are seen where a causal mask leaves half of them, so an encoder's attention takes twice as long and no less.
TEST(FamiliesPredict, StepsTakeLongerThanTheirFlopsAtThePeak) {
  const Cluster cluster = read_cluster("aws-p5");
  for (const char* name : {"mpt-1b", "t5-large", "vit-h14"}) {
    const plan::Plan plan = plan_of(model::preset(name), 8, 512);
    const Prediction on_gpus = predict_on_gpus(plan, cluster);
    EXPECT_GT(on_gpus.step_time_s, on_gpus.model_flops / on_gpus.gpu->peak_flops_per_s) << name;
    EXPECT_LT(on_gpus.step_time_s, 20 * on_gpus.model_flops / on_gpus.gpu->peak_flops_per_s) << name;
    EXPECT_GT(predict(plan, generic_machine(8), {8, 1}).step_time_s, on_gpus.step_time_s) << name;
  }
}

// 12 layers of forward and backward, whose FLOPs no GPU does faster than by its peak in f32, nor a processor.
TEST(FamiliesPredict, ReattentionTakesItsFlopsInFloat) {
  const Cluster cluster = read_cluster("aws-p5");
  const auto plan_of_vit = [](bool reattention) {
    return plan_of(model::VitConfig{.heads = 16, .classes = 10, .reattention = reattention}, 8, 1);
  };
  const plan::Plan plain = plan_of_vit(false), plan = plan_of_vit(true);
  double flops = 0;
  for (const plan::Op& op : plan.ops_of(plan.segments.front()))
    if (op.kind == plan::OpKind::reattention || op.kind == plan::OpKind::reattention_backward) flops += op.cost.flops;
  const double pairs = 12.0 * 8 * 16 * 197 * 197;
  EXPECT_EQ(flops, pairs * ((4 + 10) * 48 + (2 + 6) * 16 + 8 + 22));
  const Prediction before = predict_on_gpus(plain, cluster), after = predict_on_gpus(plan, cluster);
  EXPECT_GT(after.step_time_s - before.step_time_s, 5 * flops / cluster.device.fp32_flops.value);
  EXPECT_NEAR(after.model_flops / before.model_flops, 1, 1e-3) << "the mixing is not counted";
  const auto on_cores = [](const plan::Plan& p) { return predict(p, generic_machine(8), {8, 1}).step_time_s; };
  EXPECT_GT(on_cores(plan), on_cores(plain));
}

// A base that is frozen has no gradients of its own, which are a third of the work.
TEST(FamiliesPredict, LoraDoesTwoThirdsOfTheWork) {
  const auto flops_of = [](std::int64_t rank) {
    return model_flops(plan_of(model::LlamaConfig{.layers = 2, .max_seq_len = 8, .lora = {.rank = rank}}, 1, 8));
  };
  EXPECT_NEAR(flops_of(1) / flops_of(0), 2.0 / 3, 0.01);
}

// 20 units of 75 GFLOP and a half, forward and backward, at 0.4 of the peak.
TEST(FamiliesPredict, AProfilesUnitsRunAtThePartOfThePeakThatItSays) {
  const model::HfModel model = model::read_hf_config(FORESHARD_TEST_DATA "/configs/profile-example.json");
  const Prediction prediction = predict_on_gpus(plan_of(model.config, 64, 1), read_cluster("aws-p5"));
  const double flops = 64 * (20 * 75e9 + 3 * 2.4e8 + 3 * 1.4e7);
  const double compute_s = flops / (0.4 * prediction.gpu->peak_flops_per_s) * prediction.gpu->slowest_rank_factor;
  EXPECT_DOUBLE_EQ(prediction.model_flops, flops);
  const double busy_s = prediction.lane_busy_s[static_cast<std::size_t>(plan::Lane::compute)];
  EXPECT_GT(busy_s, compute_s);
  EXPECT_LT(busy_s, 1.3 * compute_s) << "the update and what collectives take of memory besides";
}

}  // namespace
}  // namespace foreshard::sim
