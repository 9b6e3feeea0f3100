#include <fmt/format.h>

#include <algorithm>

#include "model/hf_config_checks.hpp"
#include "model/hf_config_families.hpp"

namespace foreshard::model {
namespace {

constexpr std::string_view alone = "a decoder alone is what is planned";
constexpr double rope_theta = 10000;  // default_theta of transformers' configurations

using hf::Names;

void read_sizes(HfConfigFile& file, const hf::Decoder& keys, auto& c) {
  c.width = file.size(keys.width);
  c.layers = file.size(keys.layers);
  c.heads = file.size(keys.heads);
  c.vocab_size = file.size(keys.vocab_size);
  c.max_seq_len = file.size(keys.positions);
  c.norm_epsilon = file.positive(hf::norm_epsilon, keys.norm_epsilon_key, keys.norm_epsilon);
  c.tied_head = file.boolean(hf::tied_head, keys.tied_head);
  refuse_flag(file, "is_encoder_decoder", alone);
  refuse_flag(file, "add_cross_attention", alone);
}

std::int64_t read_kv_heads(HfConfigFile& file, const hf::Decoder& keys, std::int64_t heads) {
  if (const auto given = file.integer(hf::kv_heads)) return *given;
  const std::int64_t absent = file.null(hf::kv_heads.front()) ? keys.null_kv_heads : keys.kv_heads;
  file.assume(hf::kv_heads.front(),
              absent > 0 ? fmt::format("{}", absent) : fmt::format("as many as heads, {}", heads));
  return absent > 0 ? absent : heads;
}

std::int64_t read_head_width(HfConfigFile& file, std::int64_t width, std::int64_t heads) {
  if (const auto given = file.integer(hf::head_width)) return *given;
  file.assume(hf::head_width.front(), fmt::format("{}/{} = {}", width, heads, width / heads));
  return 0;
}

/// Older files have `rope_theta` and `rope_scaling`, newer ones both in `rope_parameters`.
double read_rope(HfConfigFile& file) {
  constexpr Names<1> theta{"rope_theta"};
  constexpr Names<2> type{"rope_type", "type"};
  HfConfigFile scaling = file.object("rope_scaling"), parameters = file.object("rope_parameters");
  const auto outer = file.positive(theta), inner = parameters.positive(theta);
  if (outer && inner && *outer != *inner)
    file.problem(
        fmt::format("rope_theta is {}, but rope_parameters.rope_theta is {}: remove one of the two", *outer, *inner));
  for (HfConfigFile* rope : {&scaling, &parameters})
    if (const auto name = rope->text(type); name && *name != "default")
      file.note(fmt::format("rotary positions of the type {} are computed as plain ones: this changes no size or time",
                            *name));
  file.take("rope_scaling", scaling), file.take("rope_parameters", parameters);
  if (!outer && !inner) file.assume(theta.front(), fmt::format("{:g}", rope_theta));
  return outer.value_or(inner.value_or(rope_theta));
}

LlamaConfig read_llama_shape(HfConfigFile& file, const hf::Decoder& keys) {
  LlamaConfig c;
  read_sizes(file, keys, c);
  c.ffn_width = file.size(keys.ffn_width);
  c.head_width = read_head_width(file, c.width, c.heads);
  if (c.head_width * c.heads == c.width) c.head_width = 0;
  c.kv_heads = read_kv_heads(file, keys, c.heads);
  if (c.kv_heads == c.heads) c.kv_heads = 0;
  c.rope_theta = read_rope(file);
  expect_activation(file, {"silu", "swish"});
  note_dropout(file, {"attention_dropout"});
  return c;
}

constexpr Names<1> window{"sliding_window"};

/// Null says that there is none.
std::int64_t read_window(HfConfigFile& file) {
  constexpr std::int64_t absent = 4096;
  if (!file.has(window.front())) file.assume(window.front(), fmt::format("{}", absent));
  return file.integer(window).value_or(file.has(window.front()) ? 0 : absent);
}

/// Of Qwen2: `max_window_layers` without a window, then those with one, unless `layer_types` names each.
std::int64_t read_full_layers(HfConfigFile& file, std::int64_t layers) {
  constexpr Names<1> first{"max_window_layers"};
  constexpr std::int64_t absent = 28;
  const std::vector<std::string> types = file.texts("layer_types");
  const auto given = file.integer(first, 0);
  if (types.empty()) {
    if (!given) file.assume(first.front(), fmt::format("{}", absent));
    return given.value_or(absent);
  }
  const auto sliding = std::ranges::find(types, "sliding_attention");
  const bool is_known =
      std::all_of(types.begin(), sliding, [](const auto& type) { return type == "full_attention"; }) &&
      std::all_of(sliding, types.end(), [](const auto& type) { return type == "sliding_attention"; });
  if (!is_known || std::ssize(types) != layers)
    file.refuse("layer_types", fmt::format("for each of {} layers \"full_attention\" or \"sliding_attention\", the "
                                           "latter in the last layers",
                                           layers));
  return sliding - types.begin();
}

}  // namespace

GptConfig read_gpt2(HfConfigFile& file) {
  GptConfig c;
  read_sizes(file, hf::gpt2, c);
  const std::int64_t ffn = file.size(hf::gpt2.ffn_width, 4 * c.width, fmt::format("4·{} = ", c.width));
  c.ffn_width = ffn == 4 * c.width ? 0 : ffn;
  expect_activation(file, {"gelu_new", "gelu_fast", "gelu_pytorch_tanh", "gelu_python_tanh"});
  note_dropout(file, {"resid_pdrop", "embd_pdrop", "attn_pdrop"});
  return c;
}

LlamaConfig read_llama(HfConfigFile& file) {
  LlamaConfig c = read_llama_shape(file, hf::llama);
  c.qkv_bias = c.output_bias = file.boolean(Names<1>{"attention_bias"}, false);
  c.ffn_bias = file.boolean(Names<1>{"mlp_bias"}, false);
  return c;
}

LlamaConfig read_mistral(HfConfigFile& file) {
  LlamaConfig c = read_llama_shape(file, hf::mistral);
  c.window = read_window(file);
  return c;
}

LlamaConfig read_qwen2(HfConfigFile& file) {
  LlamaConfig c = read_llama_shape(file, hf::qwen2);
  c.qkv_bias = true;
  if (!file.boolean(Names<1>{"use_sliding_window"}).value_or(false)) return c;
  c.window = read_window(file);
  c.full_layers = c.window > 0 ? read_full_layers(file, c.layers) : 0;
  return c;
}

}  // namespace foreshard::model
