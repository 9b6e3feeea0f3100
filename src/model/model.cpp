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

/// As large as 64 bits allow where sizes make no sense, which `problems_of` says.
std::int64_t attention_width(const LlamaConfig& c) {
  std::int64_t width = 0;
  return __builtin_mul_overflow(c.heads, c.width_of_head(), &width) ? INT64_MAX : width;
}
std::int64_t attention_width(const GptConfig& c) { return c.width; }
std::int64_t attention_width(const MptConfig& c) { return c.width; }

std::string_view family_name(const GptConfig&) { return "gpt"; }
std::string_view family_name(const LlamaConfig&) { return "llama"; }
std::string_view family_name(const MptConfig&) { return "mpt"; }

using Facts = std::vector<std::pair<std::string_view, std::variant<bool, std::int64_t>>>;

void add_facts_of_family(const GptConfig&, Facts&) {}
void add_facts_of_family(const MptConfig&, Facts&) {}
void add_facts_of_family(const LlamaConfig& c, Facts& facts) {
  const Facts own{{"kv_heads", c.key_heads()},
                  {"head_width", c.width_of_head()},
                  {"qkv_bias", c.qkv_bias},
                  {"output_bias", c.output_bias},
                  {"ffn_bias", c.ffn_bias}};
  facts.insert(facts.end(), own.begin(), own.end());
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::vector<std::string_view> presets() {
  std::vector<std::string_view> names = gpt_presets();
  for (const std::string_view name : llama_presets()) names.push_back(name);
  for (const std::string_view name : mpt_presets()) names.push_back(name);
  return names;
}

Config preset(std::string_view name) {
  if (contains(gpt_presets(), name)) return gpt_preset(name);
  if (contains(llama_presets(), name)) return llama_preset(name);
  if (contains(mpt_presets(), name)) return mpt_preset(name);
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
  return std::visit(
      [](const auto& c) {
        return Dimensions{c.layers, c.width, c.heads, c.vocab_size, c.max_seq_len, attention_width(c)};
      },
      config);
}

Facts layout_facts(const Config& config) {
  return std::visit(
      [](const auto& c) {
        Facts facts{{"layers", c.layers},
                    {"width", c.width},
                    {"heads", c.heads},
                    {"vocab_size", c.vocab_size},
                    {"max_seq_len", c.max_seq_len},
                    {"ffn_width", c.ffn_width},
                    {"tied_head", c.tied_head}};
        add_facts_of_family(c, facts);
        return facts;
      },
      config);
}

double model_flops_per_token(const Config& config, std::int64_t parameters, std::int64_t seq) {
  const Dimensions d = dimensions(config);
  return 6.0 * static_cast<double>(parameters) + 12.0 * static_cast<double>(d.layers * d.attention_width * seq);
}

}  // namespace foreshard::model
