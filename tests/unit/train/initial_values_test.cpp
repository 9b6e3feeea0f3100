#include "train/initial_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/half.hpp"
#include "model/model.hpp"
#include "plan/build.hpp"

namespace foreshard::train {
namespace {

TEST(InitialValues, LargeParametersHaveThoseOfEachElement) {
  const model::Config config =
      model::GptConfig{.layers = 1, .width = 64, .heads = 2, .vocab_size = 50'000, .max_seq_len = 8};
  const model::Graph graph = model::build(config, {.batch = 1, .seq = 8});
  const plan::Plan plan = plan::build_plan(graph, {.inner = 1}, {});
  std::vector<float> shard(static_cast<std::size_t>(plan.units[0].shard_elements), -1.0F);
  fill_initial_shard(graph, plan, 0, 0, 7, shard.data());
  for (const plan::ShardPart& part : plan::parts_of_shard(plan.units[0], 0)) {
    const model::Parameter& parameter = graph.parameters[part.piece->parameter.value];
    for (std::int64_t i = 0; i < part.count; i += part.count < 10'000 ? 1 : 997)
      EXPECT_EQ(shard[static_cast<std::size_t>(part.at + i)],
                static_cast<float>(initial_value(parameter, 7, part.first + i)))
          << parameter.name << " " << i;
  }
}

TEST(InitialValues, OfParametersKeptInBf16AreRoundedOnce) {
  const model::Config config =
      model::GptConfig{.layers = 1, .width = 64, .heads = 2, .vocab_size = 50, .max_seq_len = 8};
  const model::Graph graph = model::build(config, {.batch = 1, .seq = 8});
  plan::ScheduleOptions options;
  options.precision.parameters = options.master = DType::bf16;
  const plan::Plan plan = plan::build_plan(graph, {.inner = 2}, options);
  std::vector<BFloat16> shard(static_cast<std::size_t>(plan.units[0].shard_elements), BFloat16(-1.0F));
  fill_initial_shard(graph, plan, 0, 1, 7, shard.data());
  for (const plan::ShardPart& part : plan::parts_of_shard(plan.units[0], 1)) {
    for (std::int64_t i = 0; i < part.count; ++i) {
      BFloat16& seen = shard[static_cast<std::size_t>(part.at + i)];
      const double exact = initial_value(graph.parameters[part.piece->parameter.value], 7, part.first + i);
      EXPECT_EQ(seen.bits, BFloat16(exact).bits);
      seen = {};
    }
  }
  EXPECT_EQ(std::ranges::count(shard, 0, &BFloat16::bits), plan.units[0].shard_elements) << "the rest is padding";
}

}  // namespace
}  // namespace foreshard::train
