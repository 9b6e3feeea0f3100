#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "model/model.hpp"

namespace foreshard::model {
namespace {

std::int64_t parameters_of(const Config& config) { return build(config, {1, 4}).parameter_count(); }

double flops_of(const Graph& graph, OpKind kind) {
  double sum = 0;
  for (const Operator& op : graph.operators)
    if (op.kind == kind) sum += flops(op.kind, op.sizes);
  return sum;
}

std::int64_t count_of(const Graph& graph, OpKind kind) {
  return std::ranges::count_if(graph.operators, [&](const Operator& op) { return op.kind == kind; });
}

// Numbers of parameters that llm-foundry's table of throughputs gives.
TEST(Mpt, PresetsHaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters_of(preset("mpt-125m")), 125'311'488);
  EXPECT_EQ(parameters_of(preset("mpt-350m")), 355'985'408);
  EXPECT_EQ(parameters_of(preset("mpt-760m")), 760'470'528);
  EXPECT_EQ(parameters_of(preset("mpt-1b")), 1'315'950'592);
  EXPECT_EQ(parameters_of(preset("mpt-3b")), 2'651'837'440);
  EXPECT_EQ(parameters_of(preset("mpt-7b-benchmark")), 6'658'859'008);
  EXPECT_EQ(parameters_of(preset("mpt-13b")), 12'853'954'560);
  EXPECT_EQ(parameters_of(preset("mpt-30b-benchmark")), 29'975'214'080);
  EXPECT_EQ(parameters_of(preset("mpt-70b")), 64'862'437'376);
}

// Published sizes of the weights.
TEST(T5, PresetsHaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters_of(preset("t5-small")), 60'506'624);
  EXPECT_EQ(parameters_of(preset("t5-base")), 222'903'552);
  EXPECT_EQ(parameters_of(preset("t5-large")), 737'668'096);
  EXPECT_EQ(parameters_of(preset("t5-3b")), 2'851'598'336);
  EXPECT_EQ(parameters_of(preset("t5-11b")), 11'307'321'344);
  EXPECT_EQ(parameters_of(preset("t5-v1.1-xl")), 2'849'757'184);
  EXPECT_EQ(parameters_of(preset("t5-v1.1-xxl")), 11'135'332'352);
}

TEST(Vit, PresetsHaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters_of(preset("vit-b16")), 86'567'656);
  EXPECT_EQ(parameters_of(preset("vit-l16")), 304'326'632);
  EXPECT_EQ(parameters_of(preset("vit-h14")), 632'045'800);
  EXPECT_EQ(parameters_of(VitConfig{.classes = 0}), 85'798'656) << "the body without a head";
}

// Every query of the encoder sees all keys, those of the decoder half of its own and all of the encoder's.
TEST(T5, AttentionFlops) {
  const T5Config c{.layers = 3, .width = 8, .heads = 2, .vocab_size = 11, .decoder_layers = 2, .head_width = 6};
  const Graph graph = build_t5(c, {2, 5});
  EXPECT_EQ(count_of(graph, OpKind::full_attention), 3 + 2);
  EXPECT_EQ(count_of(graph, OpKind::attention), 2);
  EXPECT_EQ(flops_of(graph, OpKind::full_attention), (3 + 2) * 4.0 * 2 * 2 * 6 * 5 * 5);
  EXPECT_EQ(flops_of(graph, OpKind::attention), 2 * 4.0 * 2 * 2 * 6 * 15);
}

TEST(T5, OneBiasServesAllBlocksOfAStack) {
  const Graph graph = build_t5({.layers = 3, .width = 8, .heads = 2, .vocab_size = 11}, {2, 5});
  EXPECT_EQ(count_of(graph, OpKind::relative_bias), 2);
  std::vector<TensorId> biases;
  for (const Operator& op : graph.operators)
    if (op.inputs.size() == 4) biases.push_back(op.inputs[3]);
  ASSERT_EQ(biases.size(), 6U);
  EXPECT_EQ(std::count(biases.begin(), biases.begin() + 3, biases[0]), 3);
  EXPECT_EQ(std::count(biases.begin() + 3, biases.end(), biases[3]), 3);
  EXPECT_NE(biases[0], biases[3]);
  EXPECT_EQ(graph[biases[0]].elements, 2 * (2 * 5 - 1));
}

TEST(T5, UnitsAreTheRootAndAllBlocks) {
  const Graph graph = build_t5({.layers = 3, .decoder_layers = 2}, {1, 5});
  EXPECT_EQ(graph.units.size(), 1U + 3 + 2);
}

TEST(Vit, TheHeadReadsOneTokenOfAnImage) {
  const VitConfig c{
      .layers = 1, .width = 8, .heads = 2, .ffn_width = 5, .patches = 9, .patch_values = 12, .classes = 4};
  const Graph graph = build_vit(c, {3, 1});
  EXPECT_EQ(graph[graph.tokens].elements, 3 * 10);
  const Operator& head = graph.operators[graph.operators.size() - 2];
  EXPECT_EQ(head.sizes, (Sizes{.rows = 3, .cols = 4, .inner = 8}));
  EXPECT_EQ(flops_of(graph, OpKind::full_attention), 4.0 * 3 * 8 * 10 * 10);
}

// Beside ViT's of the same sizes, a matrix and two vectors of the heads in each block.
TEST(DeepVit, HasTheMixingOfHeadsBesides) {
  for (const char* name : {"deepvit-cifar10", "deepvit-16b", "deepvit-32b"}) {
    VitConfig c = vit_preset(name);
    EXPECT_EQ(family_of(c), "deepvit");
    const std::int64_t parameters = parameters_of(c);
    c.reattention = false;
    EXPECT_EQ(parameters - parameters_of(c), c.layers * (c.heads * c.heads + 2 * c.heads)) << name;
  }
}

// Of 3·10·10 pairs in each of two heads: products of 4 wide with q and v, of 2 heads, and the norm.
TEST(DeepVit, FlopsCountTheMixing) {
  const VitConfig c{.layers = 2, .width = 8, .heads = 2, .patches = 9, .patch_values = 12, .reattention = true};
  const Graph graph = build_vit(c, {3, 1});
  EXPECT_EQ(count_of(graph, OpKind::full_attention), 0);
  const double pairs = 2 * 3 * 10 * 10 * 2;
  EXPECT_EQ(flops_of(graph, OpKind::reattention), pairs * (2 * 4 + 2 * 4 + 2 * 2 + 8));
  const Operator& op = *std::ranges::find(graph.operators, OpKind::reattention, &Operator::kind);
  EXPECT_EQ(2 * flops(OpKind::reattention_backward, op.sizes), pairs * (5 * 2 * 4 + 3 * 2 * 2 + 8 + 14));
  EXPECT_EQ(graph[op.outputs[1]].elements, 3 * 2 * 10) << "a log Σ exp of each query and head";
}

TEST(Families, NameAllThatIsWrong) {
  using testing::Contains;
  using testing::HasSubstr;
  EXPECT_THAT(problems(MptConfig{.width = 10, .heads = 3}, {1, 1}), Contains(HasSubstr("does not divide")));
  EXPECT_THAT(problems(T5Config{.head_width = 0}, {1, 1}), Contains(HasSubstr("head_width is 0")));
  EXPECT_THAT(problems(VitConfig{.width = 10, .heads = 3}, {1, 1}), Contains(HasSubstr("does not divide")));
  EXPECT_THAT(problems(VitConfig{.patches = 0}, {1, 1}), Contains(HasSubstr("patches of an image is 0")));
  EXPECT_THAT(problems(VitConfig{.heads = 1, .reattention = true}, {1, 1}), Contains(HasSubstr("expected 2 or more")));
  EXPECT_THAT(problems(T5Config{.layers = 1 << 20}, {1, 1}), Contains(HasSubstr("expected at most 4096")));
}

}  // namespace
}  // namespace foreshard::model
