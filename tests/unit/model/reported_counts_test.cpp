// Parameters of models that tools counted wrong, as their users reported.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "model/hf_config.hpp"
#include "model/model.hpp"

namespace foreshard::model {
namespace {

std::int64_t parameters_of(const LlamaConfig& config) { return build_llama(config, {1, 4}).parameter_count(); }

LlamaConfig with_a_tied_head(LlamaConfig config) {
  config.tied_head = true;
  return config;
}

/// EleutherAI/cookbook#36: 56.19 billion, of a feed-forward layer with two matrices.
TEST(ReportedCounts, AGatedFeedForwardLayerHasThreeMatrices) {
  const HfModel qwen = hf_model_of(HfConfigFile::parse(
      R"({"model_type": "qwen2", "hidden_size": 8192, "num_hidden_layers": 80, "num_attention_heads": 64,
          "num_key_value_heads": 64, "intermediate_size": 24576, "vocab_size": 152064, "tie_word_embeddings": false})",
      "Qwen1.5-72B"));
  const std::int64_t all = build(qwen.config, {1, 4}).parameter_count();
  EXPECT_EQ(all, 72'287'920'128);
  EXPECT_NEAR(static_cast<double>(all - 80LL * 8192 * 24576), 56.19e9, 0.02e9) << "what the tool said";
}

/// hahnyuan/LLM-Viewer#12: keys and values as large as queries.
TEST(ReportedCounts, SharedKeyHeadsShrinkKeysAndValues) {
  LlamaConfig llama = llama_preset("llama2-70b");
  EXPECT_EQ(parameters_of(llama), 68'976'648'192);
  const Graph graph = build_llama(llama, {1, 16});
  const auto attention = std::ranges::find(graph.operators, OpKind::attention, &Operator::kind);
  ASSERT_NE(attention, graph.operators.end());
  EXPECT_EQ(graph[attention->inputs[0]].elements, 16 * 64 * 128);
  for (const std::size_t of_keys : {1, 2}) EXPECT_EQ(graph[attention->inputs[of_keys]].elements, 16 * 8 * 128);
  llama.kv_heads = 0;
  EXPECT_EQ(parameters_of(llama), 78'371'889'152) << "what the tool's sizes add up to";
}

/// cli99/llm-analysis counts one table of the vocabulary where there are two.
TEST(ReportedCounts, UntiedModelsHaveTwoTables) {
  struct Model {
    const char* preset;
    std::int64_t parameters, table;
  };
  for (const auto& [preset, parameters, table] :
       {Model{"llama2-7b", 6'738'415'616, 131'072'000}, Model{"llama2-70b", 68'976'648'192, 262'144'000},
        Model{"llama3-8b", 8'030'261'248, 525'336'576}}) {
    EXPECT_EQ(parameters_of(llama_preset(preset)), parameters) << preset;
    EXPECT_EQ(parameters - parameters_of(with_a_tied_head(llama_preset(preset))), table) << preset;
  }
}

/// cli99/llm-analysis#19, NVIDIA/Megatron-LM#1345: one norm a layer, or the last one in every stage.
TEST(ReportedCounts, ALayerHasTwoNormsAndTheModelOneMore) {
  for (const char* preset : {"llama2-7b", "llama3-8b", "qwen2.5-7b"}) {
    const LlamaConfig config = llama_preset(preset);
    std::int64_t norms = 0, elements = 0;
    for (const Parameter& parameter : build_llama(config, {1, 4}).parameters)
      if (parameter.name.find("norm") != std::string::npos) ++norms, elements += parameter.elements();
    EXPECT_EQ(norms, 2 * config.layers + 1) << preset;
    EXPECT_EQ(elements, norms * config.width) << preset;
  }
}

}  // namespace
}  // namespace foreshard::model
