#include "model/gpt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foreshard::model {
namespace {

std::int64_t parameters_of(std::string_view preset) { return build_gpt(gpt_preset(preset), {1, 16}).parameter_count(); }

// Published sizes of the GPT-2 weights.
TEST(Gpt, PresetsHaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters_of("gpt2"), 124'439'808);
  EXPECT_EQ(parameters_of("gpt2-medium"), 354'823'168);
  EXPECT_EQ(parameters_of("gpt2-large"), 774'030'080);
  EXPECT_EQ(parameters_of("gpt2-xl"), 1'557'611'200);
}

TEST(Gpt, AnUntiedHeadAddsOneTable) {
  GptConfig config = gpt_preset("gpt2");
  config.tied_head = false;
  EXPECT_EQ(build_gpt(config, {1, 16}).parameter_count(), 124'439'808 + 50257 * 768);
}

TEST(Gpt, UnitsAreTheRootAndOnePerBlock) {
  const Graph graph = build_gpt({.layers = 3, .width = 8, .heads = 2, .vocab_size = 11, .max_seq_len = 4}, {2, 4});
  ASSERT_EQ(graph.units.size(), 4U);
  EXPECT_EQ(graph.units[0].name, "root");
  EXPECT_EQ(graph.units[3].name, "u2");
  for (std::size_t unit = 1; unit < 4; ++unit) {
    std::int64_t count = 0;
    for (const ParameterId id : graph.units[unit].parameters) count += graph.parameters[id.value].elements();
    EXPECT_EQ(count, 12 * 8 * 8 + 13 * 8);  // 4·d² + 8·d² weights; 3d + d + 4d + d biases, 4d of norms
  }
}

TEST(Gpt, CausalAttentionCountsTheUnmaskedHalf) {
  // One head of width 3, 4 tokens: 4·5/2 = 10 pairs, each 2·3 multiply-adds for the score and as many for the value.
  EXPECT_EQ(flops(OpKind::attention, {.inner = 3, .batch = 1, .seq = 4, .heads = 1}), 10 * 2 * 2 * 3);
  EXPECT_EQ(flops(OpKind::linear, {.rows = 5, .cols = 7, .inner = 11}), 2 * 5 * 7 * 11);
}

TEST(Gpt, NamesEverythingThatIsWrong) {
  const auto found =
      problems({.layers = 0, .width = 10, .heads = 3, .vocab_size = 11, .max_seq_len = 4, .dropout = 1}, {1, 5});
  EXPECT_THAT(found, testing::ElementsAre(
                         testing::HasSubstr("model.layers is 0"), testing::HasSubstr("train.seq_len is 5"),
                         testing::AllOf(testing::HasSubstr("model.heads is 3"), testing::HasSubstr("width 10")),
                         testing::HasSubstr("model.dropout is 1")));
}

}  // namespace
}  // namespace foreshard::model
