#include "model/hf_config.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/error.hpp"

namespace foreshard::model {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

HfModel model_of(const Json& json) { return hf_model_of(HfConfigFile::parse(json.dump(), "job/config.json")); }
GptConfig gpt_of(const Json& json) { return std::get<GptConfig>(model_of(json).config); }
LlamaConfig llama_of(const Json& json) { return std::get<LlamaConfig>(model_of(json).config); }
std::vector<std::string> notes_of(const Json& json) { return model_of(json).source.notes; }

std::string refusal_of_text(const std::string& text) {
  try {
    hf_model_of(HfConfigFile::parse(text, "job/config.json"));
  } catch (const InputError& error) {
    EXPECT_EQ(error.code(), ExitCode::bad_input);
    EXPECT_THAT(error.what(), HasSubstr("job/config.json"));
    return error.what();
  }
  return "";
}
std::string refusal_of(const Json& json) { return refusal_of_text(json.dump()); }

/// Text in front of the shape of a model, after it is changed by one key.
Json with(Json json, const std::string& key, const Json& value) {
  json[key] = value;
  return json;
}

const Json llama{{"model_type", "llama"},    {"hidden_size", 96},        {"num_hidden_layers", 3},
                 {"num_attention_heads", 6}, {"intermediate_size", 160}, {"vocab_size", 100}};
const Json gpt2{{"model_type", "gpt2"}};

TEST(HfConfig, AFolderIsItsConfigFile) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "hf_config_folder";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << llama.dump();
  EXPECT_EQ(dimensions(read_hf_config(folder).config).width, 96);
  EXPECT_EQ(read_hf_config(folder).source.from, (folder / "config.json").string());
  std::filesystem::remove_all(folder);
  EXPECT_THROW(read_hf_config(folder), InputError);
}

struct Alias {
  std::string family, key;
  std::int64_t Dimensions::*field;
};

class HfAlias : public testing::TestWithParam<Alias> {};

TEST_P(HfAlias, IsReadAsItsSize) {
  const auto& [family, key, field] = GetParam();
  const HfModel model = model_of({{"model_type", family}, {key, 24}});
  EXPECT_EQ(dimensions(model.config).*field, 24);
  EXPECT_THAT(model.source.notes, Not(Contains(HasSubstr("without effect here: " + key))));
}

std::vector<Alias> aliases() {
  std::vector<Alias> all;
  const auto add = [&](hf::Spellings spellings, std::int64_t Dimensions::*field) {
    for (const std::string_view key : spellings)
      for (const char* family : {"gpt2", "llama"}) all.push_back({family, std::string(key), field});
  };
  add(hf::width, &Dimensions::width), add(hf::layers, &Dimensions::layers), add(hf::heads, &Dimensions::heads);
  add(hf::vocab_size, &Dimensions::vocab_size), add(hf::positions, &Dimensions::max_seq_len);
  return all;
}

INSTANTIATE_TEST_SUITE_P(All, HfAlias, testing::ValuesIn(aliases()),
                         [](const auto& alias) { return alias.param.family + "_" + alias.param.key; });

TEST(HfConfig, OtherSpellingsOfLlamasSizes) {
  for (const std::string_view key : hf::kv_heads) EXPECT_EQ(llama_of(with(llama, std::string(key), 2)).kv_heads, 2);
  for (const std::string_view key : hf::head_width) EXPECT_EQ(llama_of(with(llama, std::string(key), 8)).head_width, 8);
  for (const std::string_view key : hf::ffn_width)
    EXPECT_EQ(llama_of({{"model_type", "llama"}, {std::string(key), 7}}).ffn_width, 7);
  for (const std::string_view key : hf::norm_epsilon)
    EXPECT_EQ(llama_of(with(llama, std::string(key), 0.25)).norm_epsilon, 0.25);
  for (const std::string_view key : hf::activation) EXPECT_EQ(refusal_of(with(llama, std::string(key), "silu")), "");
}

TEST(HfConfig, ASizeGivenTwiceMustAgree) {
  EXPECT_EQ(gpt_of({{"model_type", "gpt2"}, {"n_embd", 96}, {"hidden_size", 96}}).width, 96);
  EXPECT_THAT(refusal_of({{"model_type", "gpt2"}, {"n_embd", 96}, {"hidden_size", 48}}),
              AllOf(HasSubstr("hidden_size is 48"), HasSubstr("n_embd"), HasSubstr("is 96"), HasSubstr("remove one")));
}

TEST(HfConfig, MissingAndNullAreTheFamilysDefaultsAndNoted) {
  for (const Json& json : {gpt2, Json{{"model_type", "gpt2"}, {"n_embd", nullptr}, {"n_inner", nullptr}}}) {
    EXPECT_EQ(gpt_of(json).width, 768);
    EXPECT_EQ(gpt_of(json).ffn_width, 0);
    EXPECT_THAT(notes_of(json), AllOf(Contains("n_embd not given: 768"), Contains("n_inner not given: 4·768 = 3072")));
  }
  EXPECT_EQ(llama_of({{"model_type", "llama"}}).key_heads(), 32);
  EXPECT_THAT(notes_of({{"model_type", "llama"}}),
              AllOf(Contains("head_dim not given: 4096/32 = 128"),
                    Contains("num_key_value_heads not given: as many as heads, 32"),
                    Contains("max_position_embeddings not given: 2048"), Contains("rope_theta not given: 10000")));
}

TEST(HfConfig, MistralHasEightKeyHeadsUnlessItSaysOtherwise) {
  EXPECT_EQ(llama_of({{"model_type", "mistral"}}).kv_heads, 8);
  EXPECT_EQ(llama_of({{"model_type", "mistral"}, {"num_key_value_heads", nullptr}}).kv_heads, 8);
  EXPECT_EQ(llama_of({{"model_type", "mistral"}, {"num_key_value_heads", 4}}).kv_heads, 4);
  EXPECT_THAT(notes_of({{"model_type", "mistral"}}), Contains("num_key_value_heads not given: 8"));
}

TEST(HfConfig, BiasesAreThoseOfTheFamily) {
  const LlamaConfig qwen = llama_of(with(llama, "model_type", "qwen2"));
  EXPECT_TRUE(qwen.qkv_bias);
  EXPECT_FALSE(qwen.output_bias || qwen.ffn_bias);
  const LlamaConfig attention = llama_of(with(llama, "attention_bias", true));
  EXPECT_TRUE(attention.qkv_bias && attention.output_bias);
  EXPECT_FALSE(attention.ffn_bias);
  EXPECT_TRUE(llama_of(with(llama, "mlp_bias", true)).ffn_bias);
  EXPECT_FALSE(llama_of(with(with(llama, "attention_bias", true), "model_type", "mistral")).qkv_bias);
}

TEST(HfConfig, RotaryPositionsInEitherGeneration) {
  EXPECT_EQ(llama_of(with(llama, "rope_theta", 5e5)).rope_theta, 5e5);
  EXPECT_EQ(llama_of(with(llama, "rope_parameters", {{"rope_theta", 5e5}, {"rope_type", "default"}})).rope_theta, 5e5);
  EXPECT_THAT(notes_of(with(llama, "rope_scaling", {{"rope_type", "llama3"}, {"factor", 8.0}})),
              Contains(HasSubstr("of the type llama3 are computed as plain ones")));
  EXPECT_THAT(notes_of(with(llama, "rope_scaling", {{"type", "linear"}})), Contains(HasSubstr("type linear")));
  EXPECT_THAT(refusal_of(with(with(llama, "rope_theta", 1), "rope_parameters", {{"rope_theta", 2}})),
              HasSubstr("rope_theta is 1, but rope_parameters.rope_theta is 2"));
  EXPECT_THAT(refusal_of(with(llama, "rope_scaling", "llama3")), HasSubstr("rope_scaling is \"llama3\", expected"));
}

TEST(HfConfig, WhatIsNotTakenOverIsNoted) {
  const Json json = with(with(with(llama, "torch_dtype", "bfloat16"), "use_cache", true), "made_up", {1, 2});
  EXPECT_THAT(notes_of(json), AllOf(Contains(HasSubstr("torch_dtype \"bfloat16\" is not taken over: precision")),
                                    Contains("without effect here: use_cache, made_up")));
  EXPECT_THAT(notes_of(with(llama, "dtype", "float16")), Contains(HasSubstr("dtype \"float16\"")));
  EXPECT_THAT(notes_of(with(gpt2, "resid_pdrop", 0.1)), Contains(HasSubstr("resid_pdrop 0.1 is not taken over")));
  EXPECT_THAT(notes_of(with(gpt2, "resid_pdrop", 0.0)), Not(Contains(HasSubstr("resid_pdrop"))));
}

TEST(HfConfig, AWindowIsThatOfMistral) {
  EXPECT_EQ(llama_of({{"model_type", "mistral"}, {"sliding_window", 512}}).window, 512);
  EXPECT_EQ(llama_of({{"model_type", "mistral"}, {"sliding_window", nullptr}}).window, 0);
  EXPECT_EQ(llama_of({{"model_type", "mistral"}}).window, 4096);
  EXPECT_THAT(notes_of({{"model_type", "mistral"}}), Contains("sliding_window not given: 4096"));
  EXPECT_EQ(llama_of({{"model_type", "mistral"}, {"sliding_window", 512}}).full_layers, 0);
  EXPECT_EQ(llama_of(with(llama, "sliding_window", 512)).window, 0) << "Llama's attention knows none";
  EXPECT_THAT(refusal_of({{"model_type", "mistral"}, {"sliding_window", -1}}), HasSubstr("sliding_window is -1"));
}

TEST(HfConfig, AWindowOfQwen2IsOfItsLastLayersWhereItIsUsed) {
  const Json unused{{"model_type", "qwen2"}, {"sliding_window", 512}}, used = with(unused, "use_sliding_window", true);
  EXPECT_EQ(llama_of(unused).window, 0);
  EXPECT_EQ(llama_of(used).window, 512);
  EXPECT_EQ(llama_of(used).full_layers, 28) << "of 32";
  EXPECT_THAT(notes_of(used), Contains("max_window_layers not given: 28"));
  EXPECT_EQ(llama_of(with(used, "max_window_layers", 0)).full_layers, 0);
  EXPECT_EQ(llama_of(with(used, "sliding_window", nullptr)).window, 0);
  EXPECT_THAT(notes_of(with(with(used, "max_window_layers", 4), "layer_types", nullptr)),
              Not(Contains(HasSubstr("without effect"))));
}

TEST(HfConfig, TypesOfLayersSayWhichHaveAWindow) {
  const Json used{{"model_type", "qwen2"}, {"sliding_window", 512}, {"use_sliding_window", true}};
  const auto of = [](const Json& json, const Json& types) {
    return with(with(json, "num_hidden_layers", 3), "layer_types", types);
  };
  const char *full = "full_attention", *sliding = "sliding_attention";
  EXPECT_EQ(llama_of(of(used, {full, sliding, sliding})).full_layers, 1);
  EXPECT_EQ(llama_of(of(used, {full, full, full})).full_layers, 3);
  EXPECT_EQ(llama_of(of(used, {sliding, sliding, sliding})).full_layers, 0);
  const auto refused = HasSubstr("for each of 3 layers");
  EXPECT_THAT(refusal_of(of(used, {sliding, full, sliding})), refused) << "not expressible: must not pass unseen";
  EXPECT_THAT(refusal_of(of(used, {full, sliding})), refused);
  EXPECT_THAT(refusal_of(of(used, {full, "linear_attention", sliding})), refused);
  EXPECT_THAT(refusal_of(of(used, {full, 1, sliding})), HasSubstr("a list of strings"));
}

TEST(HfConfig, MptsPositionsAndBiases) {
  const auto mpt = [](const Json& more) {
    Json json{{"model_type", "mpt"}, {"d_model", 64}, {"n_heads", 4}};
    if (!more.is_null()) json.update(more);
    return std::get<MptConfig>(model_of(json).config);
  };
  EXPECT_EQ(mpt({}).alibi_bias_max, 8);
  EXPECT_FALSE(mpt({}).learned_positions || mpt({}).biases) << "as released";
  EXPECT_TRUE(mpt({{"attn_config", {{"alibi", false}}}}).learned_positions);
  EXPECT_FALSE(mpt({{"attn_config", {{"alibi", false}}}, {"learned_pos_emb", false}}).learned_positions);
  EXPECT_TRUE(mpt({{"no_bias", false}}).biases);
  EXPECT_EQ(mpt({{"expansion_ratio", 3}}).inner_width(), 192);
  EXPECT_THAT(refusal_of({{"model_type", "mpt"}, {"attn_config", {{"qk_ln", true}}}}),
              HasSubstr("attn_config: qk_ln is true, expected false"));
  EXPECT_THAT(refusal_of({{"model_type", "mpt"}, {"attn_config", {{"attn_type", "multiquery_attention"}}}}),
              HasSubstr("expected multihead_attention"));
}

TEST(HfConfig, T5sShape) {
  const auto t5 = [](const Json& more) {
    Json json{{"model_type", "t5"}};
    if (!more.is_null()) json.update(more);
    return std::get<T5Config>(model_of(json).config);
  };
  EXPECT_EQ(t5({{"num_layers", 4}}).layers_of_decoder(), 4);
  EXPECT_EQ(t5({{"num_layers", 4}, {"num_decoder_layers", 2}}).layers_of_decoder(), 2);
  EXPECT_EQ(t5({{"d_kv", 96}}).head_width, 96);
  EXPECT_FALSE(t5({{"tie_word_embeddings", false}}).tied_head);
  EXPECT_EQ(t5({{"feed_forward_proj", "gated-gelu"}}).feed_forward, T5Config::FeedForward::gated_gelu);
  for (const char* key : {"layer_norm_epsilon", "layer_norm_eps"}) EXPECT_EQ(t5({{key, 0.5}}).norm_epsilon, 0.5);
  EXPECT_THAT(refusal_of({{"model_type", "t5"}, {"feed_forward_proj", "tanh"}}), HasSubstr("feed_forward_proj is"));
  EXPECT_THAT(refusal_of({{"model_type", "t5"}, {"is_encoder_decoder", false}}), HasSubstr("is_encoder_decoder is"));
}

TEST(HfConfig, ViTsPatchesAndClasses) {
  const auto vit = [](const Json& more) {
    Json json{{"model_type", "vit"}};
    if (!more.is_null()) json.update(more);
    return std::get<VitConfig>(model_of(json).config);
  };
  EXPECT_EQ(vit({}).tokens(), 197);
  EXPECT_EQ(vit({}).classes, 2);
  EXPECT_EQ(vit({{"image_size", {224, 112}}, {"patch_size", {16, 8}}}).patches, 14 * 14);
  EXPECT_EQ(vit({{"patch_size", 14}, {"num_channels", 1}}).patch_values, 196);
  EXPECT_EQ(vit({{"num_labels", 1000}}).classes, 1000);
  EXPECT_EQ(vit({{"id2label", {{"0", "cat"}, {"1", "dog"}, {"2", "owl"}}}}).classes, 3);
  EXPECT_THAT(notes_of({{"model_type", "vit"}}), Contains("tokens of an image: (224/16)·(224/16) + 1 = 197"));
  EXPECT_THAT(refusal_of({{"model_type", "vit"}, {"patch_size", 300}}),
              HasSubstr("patch_size is 300, expected at most"));
  EXPECT_THAT(refusal_of({{"model_type", "vit"}, {"image_size", {1, 2, 3}}}), HasSubstr("image_size is [1,2,3]"));
}

TEST(HfConfig, DeepVitHasTheKeysOfVit) {
  const Json json{{"model_type", "deepvit"}, {"hidden_size", 384}, {"num_attention_heads", 6}, {"patch_size", 14}};
  const HfModel model = model_of(json);
  EXPECT_EQ(family_of(model.config), "deepvit");
  const auto& c = std::get<VitConfig>(model.config);
  EXPECT_TRUE(c.reattention);
  EXPECT_EQ(c.width, 384);
  EXPECT_EQ(c.tokens(), 257);
}

TEST(HfConfig, FamiliesThatAreNotKnownAreRefusedWithThoseThatAre) {
  EXPECT_THAT(refusal_of(with(llama, "model_type", "lama")),
              AllOf(HasSubstr("model_type is \"lama\", expected one of gpt2, llama"), HasSubstr("`llama`")));
  EXPECT_THAT(refusal_of({{"hidden_size", 96}}), HasSubstr("model_type is missing, expected one of gpt2"));
  EXPECT_THAT(refusal_of(with(llama, "model_type", nullptr)), HasSubstr("model_type is null"));
  EXPECT_THAT(refusal_of(with(llama, "model_type", 3)), HasSubstr("model_type is 3, expected text"));
}

TEST(HfConfig, ExpertsAreRefusedByKey) {
  for (const std::string_view key : hf::experts) {
    EXPECT_THAT(
        refusal_of(with(llama, std::string(key), 8)),
        AllOf(HasSubstr(std::string(key) + " is 8"), HasSubstr("mistral, qwen2, mpt, t5, vit, deepvit, profile")));
    EXPECT_EQ(refusal_of(with(llama, std::string(key), nullptr)), "");
  }
}

TEST(HfConfig, SeveralModelsInAFileAreRefusedWithAHint) {
  for (const std::string_view key : hf::nested)
    EXPECT_THAT(refusal_of(with(llama, std::string(key), {{"hidden_size", 3}})),
                AllOf(HasSubstr(std::string(key) + " is a configuration of its own"), HasSubstr("inner object")));
}

TEST(HfConfig, OtherActivationsAndShapesAreRefused) {
  EXPECT_THAT(refusal_of(with(llama, "hidden_act", "gelu")),
              HasSubstr("hidden_act is \"gelu\", expected silu or swish"));
  EXPECT_THAT(refusal_of(with(gpt2, "activation_function", "relu")),
              HasSubstr("activation_function is \"relu\", expected gelu_new"));
  EXPECT_THAT(refusal_of(with(gpt2, "add_cross_attention", true)), HasSubstr("add_cross_attention is true"));
  EXPECT_THAT(refusal_of(with(llama, "is_encoder_decoder", true)), HasSubstr("is_encoder_decoder is true"));
}

TEST(HfConfig, AllThatIsWrongIsSaidAtOnceWithKeyValueAndExpectation) {
  const Json wrong{{"model_type", "llama"},      {"hidden_size", "4096"},           {"num_hidden_layers", -1},
                   {"vocab_size", 1e300},        {"num_attention_heads", 1.5},      {"rms_norm_eps", 0},
                   {"tie_word_embeddings", "a"}, {"intermediate_size", 5000000000}, {"head_dim", Json::array({1})}};
  EXPECT_THAT(refusal_of(wrong),
              AllOf(HasSubstr("8 problems"), HasSubstr("hidden_size is \"4096\", expected a whole number from 1"),
                    HasSubstr("num_hidden_layers is -1"), HasSubstr("vocab_size is 1e+300"),
                    HasSubstr("num_attention_heads is 1.5"), HasSubstr("rms_norm_eps is 0, expected a number above 0"),
                    HasSubstr("tie_word_embeddings is \"a\", expected true or false"),
                    HasSubstr("intermediate_size is 5000000000"), HasSubstr("head_dim is [1]")));
}

TEST(HfConfig, WhatIsNoConfigurationIsRefused) {
  for (const char* text :
       {"", "{", "[1]", "3", "null", "{\"a\": NaN}", "{\"a\": 1e999}", "\xff\xfe", "{\"a\": \"\xff\"}"})
    EXPECT_THAT(refusal_of_text(text), HasSubstr("expected the config.json")) << text;
  const std::string deep = "{\"a\":" + std::string(1'000'000, '[');
  EXPECT_THAT(refusal_of_text(deep), HasSubstr("nested more than"));
  EXPECT_THROW(read_hf_config("/no/such/config.json"), InputError);
  EXPECT_THROW(read_hf_config("/dev/zero"), InputError);
}

}  // namespace
}  // namespace foreshard::model
