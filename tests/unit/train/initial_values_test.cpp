#include "train/initial_values.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace foreshard::train
