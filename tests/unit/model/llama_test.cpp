#include "model/llama.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace foreshard::model {
namespace {

std::int64_t parameters_of(const LlamaConfig& config) { return build_llama(config, {1, 4}).parameter_count(); }
std::int64_t parameters_of(std::string_view preset) { return parameters_of(llama_preset(preset)); }

// Published sizes of the weights.
TEST(Llama, PresetsHaveThePublishedParameterCounts) {
  EXPECT_EQ(parameters_of("llama2-7b"), 6'738'415'616);
  EXPECT_EQ(parameters_of("llama2-13b"), 13'015'864'320);
  EXPECT_EQ(parameters_of("llama2-70b"), 68'976'648'192);
  EXPECT_EQ(parameters_of("llama3-8b"), 8'030'261'248);
  EXPECT_EQ(parameters_of("llama3-70b"), 70'553'706'496);
  EXPECT_EQ(parameters_of("mistral-7b"), 7'241'732'096);
  EXPECT_EQ(parameters_of("qwen2.5-0.5b"), 494'032'768);
  EXPECT_EQ(parameters_of("qwen2.5-7b"), 7'615'616'512);
  EXPECT_EQ(parameters_of("qwen2.5-14b"), 14'770'033'664);
  EXPECT_EQ(parameters_of("qwen2.5-72b"), 72'706'203'648);
}

constexpr LlamaConfig small{
    .layers = 2, .width = 8, .heads = 4, .vocab_size = 11, .max_seq_len = 4, .ffn_width = 12, .kv_heads = 2};

TEST(Llama, ABlockHasFourProjectionsThreeFeedForwardMatricesAndTwoGains) {
  const Graph graph = build_llama(small, {2, 4});
  ASSERT_EQ(graph.units.size(), 3U);
  std::int64_t count = 0;
  for (const ParameterId id : graph.units[1].parameters) count += graph.parameters[id.value].elements();
  EXPECT_EQ(count, 2 * 8 * 8 + 2 * 8 * 4 + 3 * 8 * 12 + 2 * 8);
}

TEST(Llama, BiasesAreCountedWhereTheyAreAskedFor) {
  LlamaConfig biased = small;
  biased.qkv_bias = biased.output_bias = biased.ffn_bias = true;
  EXPECT_EQ(parameters_of(biased) - parameters_of(small), 2 * (8 + 4 + 4 + 8 + 12 + 12 + 8));
}

TEST(Llama, ATiedHeadSavesOneTable) {
  LlamaConfig tied = small;
  tied.tied_head = true;
  EXPECT_EQ(parameters_of(small) - parameters_of(tied), 11 * 8);
}

// Sharing keys saves parameters and traffic, not the arithmetic of attention.
TEST(Llama, AttentionFlopsCountQueryHeads) {
  const Graph graph = build_llama(small, {2, 4});
  const auto attention =
      std::ranges::find_if(graph.operators, [](const Operator& op) { return op.kind == OpKind::attention; });
  ASSERT_NE(attention, graph.operators.end());
  EXPECT_EQ(flops(attention->kind, attention->sizes), 2 * 4 * 10 * (2 * 2 * 2));
  EXPECT_EQ(graph[attention->inputs[0]].elements, 8 * 8);
  EXPECT_EQ(graph[attention->inputs[1]].elements, 8 * 4);
}

std::vector<Sizes> attentions_of(const LlamaConfig& config, std::int64_t seq) {
  std::vector<Sizes> all;
  for (const Operator& op : build_llama(config, {2, seq}).operators)
    if (op.kind == OpKind::attention) all.push_back(op.sizes);
  return all;
}

TEST(Llama, AWindowIsOfItsLayersAndOfLongerSequences) {
  LlamaConfig windowed = small;
  windowed.layers = 3, windowed.max_seq_len = 16, windowed.window = 5, windowed.full_layers = 1;
  const auto attentions = attentions_of(windowed, 9);
  ASSERT_EQ(attentions.size(), 3U);
  EXPECT_EQ(attentions[0].rows, 0);
  EXPECT_EQ(attentions[1].rows, 5);
  EXPECT_EQ(attentions[2].rows, 5);
  LlamaConfig plain = windowed;
  plain.window = 0;
  EXPECT_EQ(attentions_of(windowed, 5), attentions_of(plain, 5)) << "nothing changes where it leaves nothing out";
  windowed.window = -1;
  EXPECT_THAT(problems(windowed, {1, 5}), testing::ElementsAre(testing::HasSubstr("model.window is -1")));
}

TEST(Llama, AttentionFlopsCountThePairsOfAWindow) {
  for (std::int64_t seq = 1; seq <= 12; ++seq)
    for (std::int64_t window = 0; window <= 14; ++window) {
      int pairs = 0;
      for (std::int64_t query = 0; query < seq; ++query)
        for (std::int64_t key = 0; key <= query; ++key) pairs += window == 0 || query - key < window;
      const Sizes sizes{.rows = window, .inner = 3, .batch = 2, .seq = seq, .heads = 5};
      EXPECT_EQ(flops(OpKind::attention, sizes), 4 * 2 * 5 * 3 * pairs) << seq << ' ' << window;
      EXPECT_EQ(flops(OpKind::attention_backward, sizes), 10 * 2 * 5 * 3 * pairs) << seq << ' ' << window;
    }
}

std::int64_t trained_parameters_of(const LlamaConfig& config) {
  std::int64_t count = 0;
  for (const Parameter& parameter : build_llama(config, {1, 4}).parameters)
    if (parameter.trainable) count += parameter.elements();
  return count;
}

// rank·(in + out) for each projection, and nothing else is trained: as peft counts.
TEST(Llama, LoraTrainsItsMatricesAlone) {
  LlamaConfig lora = small;
  lora.lora = {.rank = 3, .targets = 0b101};
  EXPECT_EQ(trained_parameters_of(lora), 2 * 3 * ((8 + 8) + (8 + 4)));
  EXPECT_EQ(parameters_of(lora), parameters_of(small) + trained_parameters_of(lora));
  lora.lora.targets = 0x7F;
  EXPECT_EQ(trained_parameters_of(lora), 2 * 3 * (2 * (8 + 8) + 2 * (8 + 4) + 3 * (8 + 12)));
  LlamaConfig llama2 = llama_preset("llama2-7b");
  llama2.lora.rank = 8;
  EXPECT_EQ(trained_parameters_of(llama2), 4'194'304) << "what peft prints for rank 8, its default targets";
}

// As bitsandbytes in transformers: every linear layer but the head, and nothing that is no linear layer.
TEST(Llama, APackedBaseIsTheProjectionsOfBlocks) {
  LlamaConfig lora = small;
  lora.qkv_bias = true;
  lora.lora = {.rank = 3, .targets = 0b101, .base = Packing::nf4};
  std::vector<std::string> packed;
  for (const Parameter& parameter : build_llama(lora, {1, 4}).parameters)
    if (parameter.is_packed()) packed.push_back(parameter.name);
  std::vector<std::string> expected;
  for (std::int64_t layer = 0; layer < lora.layers; ++layer)
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                             "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      expected.push_back("layers." + std::to_string(layer) + "." + name + ".weight");
  EXPECT_THAT(packed, testing::ElementsAreArray(expected));
}

TEST(Llama, LoraBeginsAsTheModelItself) {
  LlamaConfig lora = small;
  lora.lora.rank = 3;
  for (const Parameter& parameter : build_llama(lora, {1, 4}).parameters)
    if (parameter.name.find("lora_B") != std::string::npos) {
      EXPECT_EQ(parameter.initial.stddev + parameter.initial.constant, 0) << parameter.name;
    }
}

TEST(Llama, NamesEverythingThatIsWrong) {
  LlamaConfig wrong = small;
  wrong.kv_heads = 3;
  wrong.width = 12;
  wrong.ffn_width = 0;
  EXPECT_THAT(problems(wrong, {1, 5}),
              testing::ElementsAre(testing::HasSubstr("train.seq_len is 5"), testing::HasSubstr("model.ffn_width is 0"),
                                   testing::HasSubstr("model.kv_heads is 3"), testing::HasSubstr("heads are 3 wide")));
}

}  // namespace
}  // namespace foreshard::model
