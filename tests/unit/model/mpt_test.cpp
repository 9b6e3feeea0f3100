#include "model/mpt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace foreshard::model {
namespace {

std::int64_t parameters_of(const MptConfig& config) { return build_mpt(config, {1, 4}).parameter_count(); }

// Published sizes of the weights.
TEST(Mpt, PresetsHaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters_of(mpt_preset("mpt-7b")), 6'649'286'656);
  EXPECT_EQ(parameters_of(mpt_preset("mpt-30b")), 29'957'200'896);
}

constexpr MptConfig small{.layers = 2, .width = 8, .heads = 4, .vocab_size = 11, .max_seq_len = 4};

TEST(Mpt, ABlockHasFourMatricesAndTwoGains) {
  const Graph graph = build_mpt(small, {2, 4});
  ASSERT_EQ(graph.units.size(), 3U);
  std::int64_t count = 0;
  for (const ParameterId id : graph.units[1].parameters) count += graph.parameters[id.value].elements();
  EXPECT_EQ(count, 12 * 8 * 8 + 2 * 8);
}

TEST(Mpt, AnUntiedHeadIsOneTableMore) {
  MptConfig untied = small;
  untied.tied_head = false;
  EXPECT_EQ(parameters_of(untied) - parameters_of(small), 11 * 8);
}

TEST(Mpt, NothingHasABias) {
  const Graph graph = build_mpt(small, {2, 4});
  for (const Parameter& parameter : graph.parameters)
    EXPECT_TRUE(parameter.name.ends_with(".weight")) << parameter.name;
}

TEST(Mpt, NamesEverythingThatIsWrong) {
  MptConfig wrong = small;
  wrong.width = 9;
  wrong.ffn_width = -1;
  EXPECT_THAT(problems(wrong, {1, 5}), testing::ElementsAre(testing::HasSubstr("train.seq_len is 5"),
                                                            testing::HasSubstr("model.ffn_width is -1"),
                                                            testing::HasSubstr("model.heads is 4")));
}

}  // namespace
}  // namespace foreshard::model
