#include <fmt/format.h>

#include <array>

#include "model/hf_config_checks.hpp"
#include "model/hf_config_families.hpp"

namespace foreshard::model {
namespace {

using hf::Names;

void read_common(HfConfigFile& file, const hf::Decoder& keys, auto& c) {
  c.width = file.size(keys.width);
  c.layers = file.size(keys.layers);
  c.heads = file.size(keys.heads);
  c.norm_epsilon = file.positive(hf::norm_epsilon, keys.norm_epsilon_key, keys.norm_epsilon);
}

void read_text_sizes(HfConfigFile& file, const hf::Decoder& keys, auto& c) {
  c.vocab_size = file.size(keys.vocab_size);
  c.max_seq_len = file.size(keys.positions);
  c.tied_head = file.boolean(hf::tied_head, keys.tied_head);
}

/// MPT has what attention is like in an object of its own.
void read_mpt_attention(HfConfigFile& file, MptConfig& c) {
  constexpr Names<1> type{"attn_type"}, largest{"alibi_bias_max"};
  HfConfigFile attention = file.object("attn_config");
  if (const auto name = attention.text(type); name && *name != "multihead_attention")
    attention.refuse("attn_type", "multihead_attention: no other is planned");
  refuse_flag(attention, "qk_ln", "queries and keys have no norms here");
  refuse_flag(attention, "prefix_lm", "attention is causal here");
  refuse_flag(attention, "rope", "MPT has no rotary positions here");
  if (attention.has("clip_qkv") && !attention.null("clip_qkv"))
    attention.note(fmt::format("clip_qkv {} is not modelled", attention.shown("clip_qkv")));
  const bool alibi = attention.boolean(Names<1>{"alibi"}, true);
  const double bias = attention.positive(largest).value_or(8);
  c.alibi_bias_max = alibi ? bias : 0;
  file.take("attn_config", attention);
}

T5Config::FeedForward read_t5_feed_forward(HfConfigFile& file) {
  constexpr Names<1> key{"feed_forward_proj"};
  const auto given = file.text(key);
  if (!given) file.assume(key.front(), "relu");
  if (!given || *given == "relu") return T5Config::FeedForward::relu;
  if (*given == "gated-gelu") return T5Config::FeedForward::gated_gelu;
  if (*given == "gated-silu") return T5Config::FeedForward::gated_silu;
  file.refuse(key.front(), "relu, gated-gelu or gated-silu: no other is planned");
  return T5Config::FeedForward::relu;
}

void expect_encoder_and_decoder(HfConfigFile& file) {
  const auto both = file.boolean(Names<1>{"is_encoder_decoder"});
  if (both && !*both) file.refuse("is_encoder_decoder", "true: T5 is planned as a whole");
}

std::int64_t read_classes(HfConfigFile& file) {
  const auto labels = file.entries("id2label");
  file.mark("label2id");
  if (const auto given = file.integer(Names<1>{"num_labels"}, 0)) return *given;
  if (labels) return *labels;
  file.assume("num_labels", "2");
  return 2;
}

void read_patches(HfConfigFile& file, VitConfig& c) {
  const auto [height, width] = file.pair("image_size", 224);
  const auto [patch_height, patch_width] = file.pair("patch_size", 16);
  const std::int64_t channels = file.size({"num_channels", Names<1>{"num_channels"}, 3});
  c.patches = (height / patch_height) * (width / patch_width);
  if (c.patches < 1) file.refuse("patch_size", "at most image_size");
  const double values =
      static_cast<double>(patch_height) * static_cast<double>(patch_width) * static_cast<double>(channels);
  if (values > INT32_MAX)
    return file.problem(
        fmt::format("patches have num_channels {} · patch_size {} · {} = {:g} values, expected at most {}", channels,
                    patch_height, patch_width, values, INT32_MAX));
  c.patch_values = channels * patch_height * patch_width;
  file.note(fmt::format("tokens of an image: ({}/{})·({}/{}) + 1 = {}", height, patch_height, width, patch_width,
                        c.tokens()));
}

}  // namespace

MptConfig read_mpt(HfConfigFile& file) {
  constexpr Names<1> ratio{"expansion_ratio"}, norm{"norm_type"};
  MptConfig c;
  read_common(file, hf::mpt, c);
  read_text_sizes(file, hf::mpt, c);
  const std::int64_t expansion = file.size({hf::mpt.ffn_width.own, ratio, hf::mpt.ffn_width.absent});
  c.ffn_width = expansion == 4 ? 0 : expansion * c.width;
  c.biases = !file.boolean(Names<1>{"no_bias"}, true);
  const bool learned = file.boolean(Names<1>{"learned_pos_emb"}, true);
  read_mpt_attention(file, c);
  c.learned_positions = learned && c.alibi_bias_max == 0;
  if (learned && !c.learned_positions) file.note("learned_pos_emb: no table of positions, since there is ALiBi");
  if (const auto name = file.text(norm); name && *name != "low_precision_layernorm" && *name != "layernorm")
    file.refuse("norm_type", "low_precision_layernorm or layernorm: no other is planned");
  note_dropout(file, {"resid_pdrop", "emb_pdrop"});
  return c;
}

T5Config read_t5(HfConfigFile& file) {
  T5Config c;
  read_common(file, hf::t5, c);
  read_text_sizes(file, hf::t5, c);
  c.ffn_width = file.size(hf::t5.ffn_width);
  c.head_width = file.size({"d_kv", hf::head_width, 64});
  c.buckets = file.size({"relative_attention_num_buckets", Names<1>{"relative_attention_num_buckets"}, 32});
  c.max_distance = file.size({"relative_attention_max_distance", Names<1>{"relative_attention_max_distance"}, 128});
  c.feed_forward = read_t5_feed_forward(file);
  c.decoder_layers = file.size({"num_decoder_layers", Names<1>{"num_decoder_layers"}}, c.layers, "as the encoder, ");
  expect_encoder_and_decoder(file);
  note_dropout(file, {"dropout_rate"});
  return c;
}

VitConfig read_vit(HfConfigFile& file) {
  VitConfig c;
  read_common(file, hf::vit, c);
  c.ffn_width = file.size(hf::vit.ffn_width);
  read_patches(file, c);
  c.classes = read_classes(file);
  c.qkv_bias = file.boolean(Names<1>{"qkv_bias"}, true);
  expect_activation(file, {"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python_tanh"});
  c.exact_gelu = file.text(hf::activation).value_or("gelu") == "gelu";
  note_dropout(file, {"hidden_dropout_prob", "attention_probs_dropout_prob"});
  return c;
}

VitConfig read_deepvit(HfConfigFile& file) {
  VitConfig c = read_vit(file);
  c.reattention = true;
  return c;
}

}  // namespace foreshard::model
