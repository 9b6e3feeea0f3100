#include <fmt/format.h>

#include <array>

#include "model/llama.hpp"
#include "model/presets.hpp"
#include "model/size_problems.hpp"

namespace foreshard::model {
namespace {

/// Sizes as in the configurations published with the weights of Llama 2 and 3 (Touvron et al. 2023, arXiv 2307.09288;
/// Grattafiori et al. 2024, arXiv 2407.21783), Mistral 7B (Jiang et al. 2023, arXiv 2310.06825) and Qwen2.5 (Qwen Team
/// 2024, arXiv 2412.15115). The byte models are ours.
constexpr std::array<Preset<LlamaConfig>, 13> presets = {{
    {"llama2-7b", {}},
    {"llama2-13b", {.layers = 40, .width = 5120, .heads = 40, .ffn_width = 13824}},
    {"llama2-70b", {.layers = 80, .width = 8192, .heads = 64, .ffn_width = 28672, .kv_heads = 8}},
    {"llama3-8b", {.vocab_size = 128256, .max_seq_len = 8192, .ffn_width = 14336, .kv_heads = 8, .rope_theta = 500000}},
    {"llama3-70b",
     {.layers = 80,
      .width = 8192,
      .heads = 64,
      .vocab_size = 128256,
      .max_seq_len = 8192,
      .ffn_width = 28672,
      .kv_heads = 8,
      .rope_theta = 500000}},
    {"mistral-7b", {.max_seq_len = 8192, .ffn_width = 14336, .kv_heads = 8, .window = 4096}},
    {"qwen2.5-0.5b",
     {.layers = 24,
      .width = 896,
      .heads = 14,
      .vocab_size = 151936,
      .max_seq_len = 32768,
      .ffn_width = 4864,
      .kv_heads = 2,
      .tied_head = true,
      .qkv_bias = true,
      .norm_epsilon = 1e-6,
      .rope_theta = 1e6}},
    {"qwen2.5-7b",
     {.layers = 28,
      .width = 3584,
      .heads = 28,
      .vocab_size = 152064,
      .max_seq_len = 32768,
      .ffn_width = 18944,
      .kv_heads = 4,
      .qkv_bias = true,
      .norm_epsilon = 1e-6,
      .rope_theta = 1e6}},
    {"qwen2.5-14b",
     {.layers = 48,
      .width = 5120,
      .heads = 40,
      .vocab_size = 152064,
      .max_seq_len = 32768,
      .ffn_width = 13824,
      .kv_heads = 8,
      .qkv_bias = true,
      .norm_epsilon = 1e-6,
      .rope_theta = 1e6}},
    {"qwen2.5-72b",
     {.layers = 80,
      .width = 8192,
      .heads = 64,
      .vocab_size = 152064,
      .max_seq_len = 32768,
      .ffn_width = 29568,
      .kv_heads = 8,
      .qkv_bias = true,
      .norm_epsilon = 1e-6,
      .rope_theta = 1e6}},
    {"byte-llama-tiny",
     {.layers = 2, .width = 64, .heads = 4, .vocab_size = 256, .max_seq_len = 256, .ffn_width = 176, .kv_heads = 2}},
    {"byte-llama-small",
     {.layers = 4, .width = 128, .heads = 4, .vocab_size = 256, .max_seq_len = 256, .ffn_width = 352, .kv_heads = 2}},
    {"byte-llama-medium",
     {.layers = 6, .width = 256, .heads = 8, .vocab_size = 256, .max_seq_len = 512, .ffn_width = 704, .kv_heads = 4}},
}};

void check_heads(const LlamaConfig& c, std::vector<std::string>& found) {
  if (c.kv_heads < 0 || c.heads % c.key_heads() != 0)
    found.push_back(fmt::format(
        "model.kv_heads is {}, which does not divide model.heads {}; expected a divisor, or 0 for as many as heads",
        c.kv_heads, c.heads));
  if (c.head_width == 0 && c.width % c.heads != 0) {
    found.push_back(fmt::format("model.heads is {}, which does not divide model.width {}; the remainder is {}", c.heads,
                                c.width, c.width % c.heads));
  } else if (c.width_of_head() < 2 || c.width_of_head() % 2 != 0) {
    found.push_back(
        fmt::format("heads are {} wide (model.width / model.heads), but rotary positions turn pairs: "
                    "expected an even number",
                    c.width_of_head()));
  }
}

}  // namespace

std::vector<std::string_view> llama_presets() { return names_of(presets); }

LlamaConfig llama_preset(std::string_view name) { return config_of(presets, name); }

std::vector<std::string> problems(const LlamaConfig& c, const BatchShape& shape) {
  const Extents extents{c.layers, c.width, c.heads, c.vocab_size, c.max_seq_len};
  std::vector<std::string> found;
  check_extents(extents, shape, found);
  check_positive("model.ffn_width", c.ffn_width, found);
  if (c.heads > 0 && c.width > 0) check_heads(c, found);
  if (c.lora.rank < 0 || c.lora.rank > c.width)
    found.push_back(fmt::format("model.lora_rank is {}, expected 0 to model.width = {}", c.lora.rank, c.width));
  if (c.lora.base != Packing::none && c.lora.rank == 0)
    found.push_back(
        fmt::format("model.lora_base is {}, but model.lora_rank is 0, so that no base is frozen: set a rank, or leave "
                    "model.lora_base out",
                    packing_names[static_cast<std::size_t>(c.lora.base)]));
  if (c.window < 0) found.push_back(fmt::format("model.window is {}, expected tokens, or 0 for all", c.window));
  const double attention = static_cast<double>(c.heads) * static_cast<double>(c.head_width);
  check_elements(extents, 2 * static_cast<double>(c.ffn_width) + 2 * attention, shape, found);
  return found;
}

}  // namespace foreshard::model
