#include "sim/planner/space.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "base/error.hpp"
#include "plan/build.hpp"

namespace foreshard::sim::planner {
namespace {

Config parsed(std::vector<std::string> flags) {
  Config config("test");
  plan::add_plan_keys(config);
  add_space_keys(config);
  config.add("parallel.world_size", 1, "");
  flags.insert(flags.begin(), {"test", "--model.preset=byte-tiny", "--train.seq_len=8"});
  std::vector<const char*> argv;
  for (const std::string& flag : flags) argv.push_back(flag.c_str());
  config.parse(static_cast<int>(argv.size()), argv.data());
  return config;
}

plan::Settings settings(const Config& config) {
  return plan::read_settings(config, config.get<int>("parallel.world_size"));
}

Space space(const Config& config, int gpus_per_node = 8) {
  const plan::Settings base = settings(config);
  return space_of(read_axes(config, base, gpus_per_node), base.global_batch(), is_kept_alike(base.schedule));
}

std::uint64_t hash_of(const plan::Settings& settings) {
  return plan::hash_of(
      plan::build_plan(model::build(settings.model, settings.batch), settings.mesh, settings.schedule));
}

/// What the report prints as a plan's keys is that plan, read as a user's command would be.
TEST(Space, EachPointsKeysMakeItsPlan) {
  const Config config = parsed({"--parallel.world_size=16", "--train.global_batch_size=64"});
  const plan::Settings base = settings(config);
  const std::vector<Point> points = space(config).points;
  ASSERT_GT(points.size(), 5000U);
  for (std::size_t i = 0; i < points.size(); i += 97) {
    std::vector<std::string> flags;
    for (const auto& [key, value] : keys_of(points[i])) flags.push_back("--" + key + "=" + value);
    EXPECT_EQ(hash_of(settings(parsed(flags))), hash_of(settings_of(base, points[i]))) << testing::PrintToString(flags);
  }
}

TEST(Space, HoldsNoPlanTwice) {
  const Config config = parsed({"--parallel.world_size=4", "--train.global_batch_size=8", "--search.offload=none",
                                "--search.precision=bf16", "--search.recompute=none,full",
                                "--search.strategy=full_shard,hybrid_shard,shard_grad_op", "--model.layers=6"});
  const plan::Settings base = settings(config);
  const Space all = space(config, 2);
  std::map<std::uint64_t, Point> plans;
  for (const Point& point : all.points) {
    const auto [entry, is_new] = plans.try_emplace(hash_of(settings_of(base, point)), point);
    EXPECT_TRUE(is_new) << testing::PrintToString(keys_of(point)) << testing::PrintToString(keys_of(entry->second));
  }
  EXPECT_GT(all.combinations, static_cast<std::int64_t>(all.points.size()));
}

TEST(Space, WhatTheUserSetStaysAndListsReplaceValues) {
  const Config config = parsed({"--parallel.world_size=16", "--train.global_batch_size=64", "--parallel.strategy=zero1",
                                "--train.local_batch_size=2", "--search.recompute=full", "--search.limit=5,unlimited"});
  const Axes axes = read_axes(config, settings(config), 8);
  EXPECT_THAT(axes.strategies, testing::ElementsAre(Strategy::zero1));
  EXPECT_THAT(axes.local_batches, testing::ElementsAre(2));
  EXPECT_THAT(axes.recompute, testing::ElementsAre(plan::Recompute::Mode::full));
  EXPECT_THAT(axes.limit, testing::ElementsAre(5, plan::unlimited));
  EXPECT_THAT(axes.gpus, testing::ElementsAre(16));
}

TEST(Space, EveryPlanMakesTheGlobalBatch) {
  const Config config = parsed({"--search.gpus=4,6,12", "--train.global_batch_size=48"});
  const Space all = space(config);
  std::set<int> gpus;
  for (const Point& point : all.points) {
    EXPECT_EQ(point.local_batch * point.micro_batches * point.gpus, 48);
    gpus.insert(point.gpus);
  }
  EXPECT_THAT(gpus, testing::ElementsAre(4, 6, 12));
}

TEST(Space, LeavesOutGpusThatTheBatchCannotBeDealtTo) {
  const Config config = parsed({"--search.gpus=4,10", "--train.global_batch_size=48"});
  const Space all = space(config);
  ASSERT_EQ(all.left_out.size(), 1U);
  EXPECT_THAT(all.left_out.front(), testing::HasSubstr("nearest: 40 or 50"));
}

TEST(Space, LeavesOutDegreesThatDivideNoNumberOfGpus) {
  const Config config = parsed({"--search.gpus=4,6", "--search.shard_degree=2,3,5", "--train.global_batch_size=48"});
  EXPECT_THAT(space(config).left_out, testing::ElementsAre("shards over 5 GPUs: no divisor of 4, 6"));
}

TEST(Space, UsualDegreesAreWholeNodesOrPartsOfOne) {
  const Config config = parsed({"--parallel.world_size=48", "--train.global_batch_size=48"});
  EXPECT_THAT(read_axes(config, settings(config), 8).shard_degrees, testing::ElementsAre(2, 4, 8, 16, 24));
}

TEST(Space, NamesEveryValueThatCannotBeRead) {
  const Config config = parsed({"--search.recompute=half", "--search.limit=0", "--search.precision=bf16/fp16"});
  try {
    read_axes(config, settings(config), 8);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    for (const char* value : {"'half'", "'0'", "'bf16/fp16'"}) EXPECT_THAT(error.what(), testing::HasSubstr(value));
  }
}

TEST(Space, RefusesKeysThatItCannotSay) {
  for (const char* flag : {"--parallel.reshard_after_forward=never", "--parallel.limit=64MiB"}) {
    const Config config = parsed({"--parallel.world_size=4", "--train.global_batch_size=8", flag});
    EXPECT_THROW(read_axes(config, settings(config), 8), InputError) << flag;
  }
}

TEST(Space, KeepsParametersOnlyInTheTypeThatTheyAreComputedWithIn) {
  const std::vector<std::string> flags{"--precision.master=bf16", "--precision.param=bf16"};
  const auto with = [&](const char* flag) {
    std::vector<std::string> all = flags;
    all.emplace_back(flag);
    return parsed(all);
  };
  for (const Point& point : space(parsed(flags)).points) EXPECT_EQ(point.parameters, DType::bf16);
  EXPECT_NO_THROW(space(with("--search.precision=bf16,bf16/fp32")));
  EXPECT_THROW(space(with("--search.precision=bf16,fp32")), InputError);
}

TEST(Space, CommandsNameOnlyWhatTheUserMustChange) {
  const Config config =
      parsed({"--parallel.world_size=16", "--train.global_batch_size=64", "--parallel.prefetch=none"});
  const Point point{.gpus = 16, .shard_degree = 16, .local_batch = 4, .parameters = DType::bf16};
  EXPECT_THAT(flags_of(point, config),
              testing::ElementsAre("--train.local_batch_size=4", "--precision.param=bf16", "--parallel.prefetch=pre"));
}

}  // namespace
}  // namespace foreshard::sim::planner
