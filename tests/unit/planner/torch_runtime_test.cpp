#include "sim/planner/torch_runtime.hpp"

#include <gtest/gtest.h>

#include <random>

#include "plan/settings.hpp"
#include "sim/runtimes/torch_prediction.hpp"

namespace foreshard::sim::planner {
namespace {

/// The keys that a prediction of PyTorch reads.
Config keys() {
  Config config("test");
  plan::add_plan_keys(config);
  config.add("parallel.world_size", 1, "");
  config.add("runtime.profile", "", "");
  torch::add_torch_keys(config);
  config.ignore({"train.", "optimizer."});
  return config;
}

Config parsed(std::vector<std::string> arguments) {
  std::vector<const char*> raw{"test"};
  for (const std::string& argument : arguments) raw.push_back(argument.c_str());
  Config config = keys();
  config.parse(static_cast<int>(raw.size()), raw.data());
  return config;
}

/// Any plan of PyTorch's that a search may look at.
class Random {
 public:
  explicit Random(unsigned seed) : random_(seed) {}
  int pick(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }

  Point point(Runtime runtime) {
    for (;;) {
      Point p{.runtime = runtime, .gpus = 1 << pick(0, 6), .strategy = static_cast<Strategy>(pick(0, 4))};
      p.shard_degree = is_hybrid(p.strategy) ? std::max(1, p.gpus / 2) : p.gpus;
      if (p.strategy == Strategy::no_shard) p.shard_degree = 1;
      if (is_hybrid(p.strategy) && p.gpus < 4) continue;
      if (const auto only = only_strategy(runtime))
        p.strategy = *only, p.shard_degree = *only == Strategy::no_shard ? 1 : p.gpus;
      p.prefetch = static_cast<plan::BackwardPrefetch>(runtime == Runtime::fsdp1 ? pick(0, 2) : 1);
      if (runtime == Runtime::fsdp2) p.prefetch = plan::BackwardPrefetch::pre;
      p.prefetch_depth = runtime == Runtime::fsdp2 ? pick(0, 2) : 1;
      p.forward_prefetch = runtime == Runtime::fsdp1 ? pick(0, 1) : 0;
      p.limit = runtime == Runtime::fsdp1 && pick(0, 1) == 0 ? plan::unlimited : 2;
      p.recompute = pick(0, 1) == 0 ? plan::Recompute::Mode::none : plan::Recompute::Mode::full;
      p.local_batch = pick(1, 3), p.micro_batches = pick(1, 5);
      p.accumulation =
          p.micro_batches > 1 && pick(0, 1) == 0 ? plan::Accumulation::no_sync : plan::Accumulation::reduce;
      p.parameters = pick(0, 2) == 0 ? DType::f32 : DType::bf16;
      p.reduction = pick(0, 1) == 0 ? DType::f32 : p.parameters;
      if (exists(p)) return p;
    }
  }

 private:
  std::mt19937 random_;
};

constexpr const char* models[] = {"gpt2", "llama3-8b", "mpt-7b", "t5-small", "vit-b16"};

std::vector<std::string> arguments(unsigned seed, Runtime runtime) {
  const std::string model = models[seed % std::size(models)];
  std::vector<std::string> all{"--model.preset=" + model, "--model.layers=2",
                               "--runtime.profile=" + std::string(name_of(runtime))};
  if (model != "vit-b16") all.emplace_back("--train.seq_len=256");
  return all;
}

std::string text(const Point& point) {
  std::string text;
  for (const auto& [key, value] : keys_of(point)) text += key + "=" + value + " ";
  return text;
}

/// The prediction that a user gets who gives the flags that a search prints.
torch::TorchPrediction by_flags(const Point& point, std::vector<std::string> all, const Cluster& cluster) {
  for (const std::string& flag : flags_of(point, parsed(all))) all.push_back(flag);
  const Config config = parsed(all);
  const plan::Settings settings = plan::read_settings(config, config.get<int>("parallel.world_size"));
  return torch::predict(torch::read_torch_job(config, settings), cluster);
}

class TorchPoints : public testing::TestWithParam<std::tuple<unsigned, Runtime>> {
 protected:
  unsigned seed = std::get<0>(GetParam());
  Runtime runtime = std::get<1>(GetParam());
  Cluster cluster = read_cluster("dgx-h100");
  std::vector<std::string> all = arguments(seed, runtime);
  Config config = parsed(all);
  plan::Settings base = plan::read_settings(config, 1);
  torch::TorchJob job = torch::read_torch_job(config, base);
  TorchFacts facts{job, cluster};
  TorchRuntime evaluator{job, cluster, facts};
  Random random{seed};
};

TEST_P(TorchPoints, AnEvaluationIsWhatItsFlagsPredict) {
  for (int i = 0; i < 4; ++i) {
    const Point point = random.point(runtime);
    const torch::TorchPrediction whole = by_flags(point, all, cluster);
    const Evaluation found = evaluator.evaluate(point);
    ASSERT_TRUE(whole.out_of_memory.empty()) << text(point);
    const double within = point.micro_batches > 3 ? 0.03 : 1e-9;
    EXPECT_NEAR(found.step_s, whole.steady.seconds, within * whole.steady.seconds) << text(point);
    if (point.micro_batches <= 3) {
      EXPECT_EQ(found.memory_bytes - whole.outside_bytes,
                std::ranges::max(whole.peaks, {}, &torch::AllocatorPeaks::reserved).reserved)
          << text(point);
    }
  }
}

TEST_P(TorchPoints, ABoundIsNoMoreThanTheStepHas) {
  for (int i = 0; i < 8; ++i) {
    const Point point = random.point(runtime);
    const Bound bound = evaluator.bound(point);
    const Evaluation found = evaluator.evaluate(point);
    EXPECT_LE(bound.memory_bytes, found.memory_bytes) << text(point);
    EXPECT_LE(bound.seconds, found.step_s * (1 + 1e-4)) << text(point);
    EXPECT_GT(bound.seconds, 0) << text(point);
  }
}

TEST_P(TorchPoints, CanonicalPointsTakeAsLong) {
  const Point point = random.point(runtime);
  const Evaluation one = evaluator.evaluate(point), other = evaluator.evaluate(canonical(point));
  EXPECT_EQ(one.step_s, other.step_s) << text(point);
  EXPECT_EQ(one.memory_bytes, other.memory_bytes) << text(point);
}

INSTANTIATE_TEST_SUITE_P(Seeds, TorchPoints,
                         testing::Combine(testing::Range(0U, 15U),
                                          testing::Values(Runtime::fsdp1, Runtime::fsdp2, Runtime::ddp, Runtime::zero1,
                                                          Runtime::zero2, Runtime::zero3)));

/// Where products are large, so that the host and small kernels do not count.
TEST(TorchRuntime, ItsBoundIsNearTheStepOfALargeModel) {
  const Cluster cluster = read_cluster("aws-p5");
  const Config config = parsed({"--model.preset=llama3-8b", "--runtime.profile=pytorch-fsdp2"});
  const plan::Settings base = plan::read_settings(config, 1);
  const torch::TorchJob job = torch::read_torch_job(config, base);
  TorchFacts facts(job, cluster);
  TorchRuntime runtime(job, cluster, facts);
  Point point{
      .runtime = Runtime::fsdp2, .gpus = 64, .shard_degree = 64, .prefetch_depth = 0, .parameters = DType::bf16};
  const Bound bound = runtime.bound(point);
  const Evaluation found = runtime.evaluate(point);
  EXPECT_GT(bound.seconds, 0.9 * found.step_s);
  EXPECT_GT(static_cast<double>(bound.memory_bytes), 0.8 * static_cast<double>(found.memory_bytes));
}

/// A point that does not exist says nothing.
TEST(TorchRuntime, KnowsWhatPyTorchHasNot) {
  for (const Runtime runtime : {Runtime::fsdp1, Runtime::fsdp2}) {
    EXPECT_TRUE(exists({.runtime = runtime}));
    EXPECT_FALSE(exists({.runtime = runtime, .strategy = Strategy::zero1}));
    EXPECT_FALSE(exists({.runtime = runtime, .offload = {.optimizer = true}}));
    EXPECT_FALSE(exists({.runtime = runtime, .recompute = plan::Recompute::Mode::selective}));
  }
  EXPECT_FALSE(exists({.runtime = Runtime::ddp}));
  EXPECT_TRUE(exists({.runtime = Runtime::ddp, .strategy = Strategy::no_shard}));
  EXPECT_FALSE(exists({.runtime = Runtime::ddp, .strategy = Strategy::no_shard, .reduction = DType::bf16}));
  EXPECT_TRUE(exists({.runtime = Runtime::zero3}));
  EXPECT_FALSE(exists({.runtime = Runtime::zero3, .accumulation = plan::Accumulation::no_sync}));
  EXPECT_FALSE(exists({.runtime = Runtime::fsdp2, .limit = plan::unlimited}));
  EXPECT_TRUE(exists({.runtime = Runtime::fsdp1, .limit = plan::unlimited}));
}

}  // namespace
}  // namespace foreshard::sim::planner
