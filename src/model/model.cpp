#include "model/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/text.hpp"

namespace foreshard::model {
namespace {

Graph build_of(const GptConfig& c, const BatchShape& shape, DType dtype) { return build_gpt(c, shape, dtype); }
Graph build_of(const LlamaConfig& c, const BatchShape& shape, DType dtype) { return build_llama(c, shape, dtype); }
Graph build_of(const MptConfig& c, const BatchShape& shape, DType dtype) { return build_mpt(c, shape, dtype); }
Graph build_of(const T5Config& c, const BatchShape& shape, DType dtype) { return build_t5(c, shape, dtype); }
Graph build_of(const VitConfig& c, const BatchShape& shape, DType dtype) { return build_vit(c, shape, dtype); }

Graph build_of(const ProfileConfig& c, const BatchShape& shape, DType dtype) { return build_profile(c, shape, dtype); }

/// As large as 64 bits allow where sizes make no sense, which `problems_of` says.
std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? INT64_MAX : result;
}

std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_add_overflow(a, b, &result) ? INT64_MAX : result;
}

std::string_view family_name(const GptConfig&) { return "gpt"; }
std::string_view family_name(const LlamaConfig&) { return "llama"; }
std::string_view family_name(const MptConfig&) { return "mpt"; }
std::string_view family_name(const T5Config&) { return "t5"; }
std::string_view family_name(const VitConfig& c) { return c.reattention ? "deepvit" : "vit"; }
std::string_view family_name(const ProfileConfig&) { return "profile"; }

/// Decoders whose heads are as wide as the residual stream together.
template <class Decoder>
Dimensions dimensions_of(const Decoder& c) {
  return {c.layers, c.width, c.heads, c.vocab_size, c.max_seq_len, c.width};
}
Dimensions dimensions_of(const LlamaConfig& c) {
  return {c.layers, c.width, c.heads, c.vocab_size, c.max_seq_len, product(c.heads, c.width_of_head())};
}
Dimensions dimensions_of(const T5Config& c) {
  return {sum(c.layers, c.layers_of_decoder()), c.width, c.heads, c.vocab_size, c.max_seq_len,
          product(c.heads, c.head_width)};
}
Dimensions dimensions_of(const VitConfig& c) { return {c.layers, c.width, c.heads, c.classes, c.tokens(), c.width}; }

Dimensions dimensions_of(const ProfileConfig& c) {
  return {static_cast<std::int64_t>(c.units.size()), c.head.output_values, 1, c.head.output_values, 1, 0};
}

/// Σ over layers of the length that a token may attend to.
std::int64_t attended_lengths(const auto& c, std::int64_t seq) { return dimensions_of(c).layers * seq; }
std::int64_t attended_lengths(const LlamaConfig& c, std::int64_t seq) {
  std::int64_t sum = 0;
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const std::int64_t window = c.window_of(layer, seq);
    sum += window > 0 ? window : seq;
  }
  return sum;
}

using Facts = std::vector<std::pair<std::string_view, std::variant<bool, std::int64_t>>>;

Facts facts_of_decoder(const auto& c) {
  return {{"layers", c.layers},
          {"width", c.width},
          {"heads", c.heads},
          {"vocab_size", c.vocab_size},
          {"max_seq_len", c.max_seq_len},
          {"ffn_width", c.ffn_width},
          {"tied_head", c.tied_head}};
}

Facts with(Facts facts, const Facts& more) {
  facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

Facts facts_of(const GptConfig& c) { return facts_of_decoder(c); }
Facts facts_of(const LlamaConfig& c) {
  const Facts facts = with(facts_of_decoder(c), {{"kv_heads", c.key_heads()},
                                                 {"head_width", c.width_of_head()},
                                                 {"qkv_bias", c.qkv_bias},
                                                 {"output_bias", c.output_bias},
                                                 {"ffn_bias", c.ffn_bias}});
  if (c.lora.rank == 0) return facts;
  return with(facts, {{"lora_rank", c.lora.rank}, {"lora_targets", std::int64_t{c.lora.targets}}});
}
Facts facts_of(const MptConfig& c) {
  return with(facts_of_decoder(c), {{"biases", c.biases}, {"learned_positions", c.learned_positions}});
}
Facts facts_of(const T5Config& c) {
  return with(facts_of_decoder(c), {{"decoder_layers", c.layers_of_decoder()},
                                    {"head_width", c.head_width},
                                    {"buckets", c.buckets},
                                    {"gated", c.feed_forward != T5Config::FeedForward::relu}});
}
Facts facts_of(const VitConfig& c) {
  const Facts facts{{"layers", c.layers},       {"width", c.width},      {"heads", c.heads},
                    {"ffn_width", c.ffn_width}, {"patches", c.patches},  {"patch_values", c.patch_values},
                    {"classes", c.classes},     {"qkv_bias", c.qkv_bias}};
  return c.reattention ? with(facts, {{"reattention", true}}) : facts;
}

Facts facts_of(const ProfileConfig& c) {
  Facts facts{{"units", static_cast<std::int64_t>(c.units.size())}};
  for (const ProfiledUnit& unit : c.units) facts.emplace_back(unit.name, unit.parameters);
  return facts;
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::vector<std::string_view> presets() {
  std::vector<std::string_view> names = gpt_presets();
  for (const auto& more : {llama_presets(), mpt_presets(), t5_presets(), vit_presets()})
    names.insert(names.end(), more.begin(), more.end());
  return names;
}

Config preset(std::string_view name) {
  if (contains(gpt_presets(), name)) return gpt_preset(name);
  if (contains(llama_presets(), name)) return llama_preset(name);
  if (contains(mpt_presets(), name)) return mpt_preset(name);
  if (contains(t5_presets(), name)) return t5_preset(name);
  if (contains(vit_presets(), name)) return vit_preset(name);
  const auto names = presets();
  const std::string near = nearest(name, names);
  throw InputError(ExitCode::usage,
                   fmt::format("model.preset: no preset '{}'{}; known: {}", name,
                               near.empty() ? "" : fmt::format(", did you mean '{}'?", near), fmt::join(names, ", ")));
}

std::string_view family_of(const Config& config) {
  return std::visit([](const auto& c) { return family_name(c); }, config);
}

std::vector<std::string> problems_of(const Config& config, const BatchShape& shape) {
  return std::visit([&](const auto& c) { return problems(c, shape); }, config);
}

Graph build(const Config& config, const BatchShape& shape, DType dtype) {
  return std::visit([&](const auto& c) { return build_of(c, shape, dtype); }, config);
}

Dimensions dimensions(const Config& config) {
  return std::visit([](const auto& c) { return dimensions_of(c); }, config);
}

Facts layout_facts(const Config& config) {
  return std::visit([](const auto& c) { return facts_of(c); }, config);
}

double model_flops_per_token(const Config& config, std::int64_t parameters, std::int64_t seq) {
  const std::int64_t lengths = std::visit([seq](const auto& c) { return attended_lengths(c, seq); }, config);
  return 6.0 * static_cast<double>(parameters) +
         12.0 * static_cast<double>(lengths * dimensions(config).attention_width);
}

}  // namespace foreshard::model
