#include "sim/runtimes/torch_model.hpp"

#include <algorithm>
#include <cmath>

namespace foreshard::sim::torch {
namespace {

using Problems = std::vector<std::string>;

Decoder of(const model::GptConfig& m, Problems&) {
  return {.family = Decoder::Family::gpt2,
          .width = m.width,
          .ffn = m.inner_width(),
          .layers = m.layers,
          .heads = m.heads,
          .kv_heads = m.heads,
          .vocab = m.vocab_size,
          .positions = m.max_seq_len,
          .tied = m.tied_head,
          .dropout = m.dropout > 0};
}

Decoder of(const model::LlamaConfig& m, Problems&) {
  return {.family = Decoder::Family::llama,
          .width = m.width,
          .ffn = m.ffn_width,
          .layers = m.layers,
          .heads = m.heads,
          .kv_heads = m.key_heads(),
          .vocab = m.vocab_size,
          .tied = m.tied_head,
          .qkv_bias = m.qkv_bias,
          .given_head_width = m.width_of_head(),
          .out_bias = m.output_bias,
          .ffn_bias = m.ffn_bias,
          .window = m.window,
          .full_layers = m.full_layers,
          .lora = m.lora};
}

/// transformers' own MPT has ALiBi and no biases, whatever its configuration says.
Decoder of(const model::MptConfig& m, Problems& problems) {
  if (m.biases || m.learned_positions || m.alibi_bias_max <= 0 || m.inner_width() != 4 * m.width || !m.tied_head)
    problems.emplace_back(
        "MPT with biases, a table of positions, another feed-forward width or a head of its own is not modelled for "
        "PyTorch");
  return {.family = Decoder::Family::mpt,
          .width = m.width,
          .ffn = m.inner_width(),
          .layers = m.layers,
          .heads = m.heads,
          .kv_heads = m.heads,
          .vocab = m.vocab_size,
          .positions = m.max_seq_len,
          .tied = m.tied_head};
}

T5 of(const model::T5Config& m, Problems& problems) {
  using FeedForward = model::T5Config::FeedForward;
  if (m.layers_of_decoder() != m.layers || m.buckets != 32 || m.feed_forward == FeedForward::gated_silu)
    problems.emplace_back(
        "T5 is modelled for PyTorch with as many blocks in both stacks, 32 buckets, and relu or gated-gelu");
  return {.width = m.width,
          .head_width = m.head_width,
          .ffn = m.ffn_width,
          .layers = m.layers,
          .heads = m.heads,
          .vocab = m.vocab_size,
          .gated = m.feed_forward != FeedForward::relu,
          .tied = m.tied_head};
}

/// Square images and patches of three colours.
Vit of(const model::VitConfig& m, Problems& problems) {
  if (m.reattention)
    problems.emplace_back(
        "DeepViT is not modelled for PyTorch, as transformers has no module of it: leave runtime.profile out, or "
        "describe the model by a profile (model_type \"profile\")");
  const auto root = [](std::int64_t square) { return std::llround(std::sqrt(static_cast<double>(square))); };
  const std::int64_t side = root(m.patches), patch = root(m.patch_values / 3);
  if (side * side != m.patches || 3 * patch * patch != m.patch_values || !m.qkv_bias || m.classes < 1 || !m.exact_gelu)
    problems.emplace_back(
        "ViT is modelled for PyTorch with square patches of three channels in square images, biases, exact gelu, a "
        "head");
  return {.width = m.width,
          .ffn = m.ffn_width,
          .layers = m.layers,
          .heads = m.heads,
          .image = side * patch,
          .patch = patch,
          .labels = m.classes};
}

Profiled of(const model::ProfileConfig& m, Problems& problems) {
  const auto is_empty = [](const model::ProfiledUnit& unit) { return unit.parameters < unit.operators; };
  if (is_empty(m.head) || std::ranges::any_of(m.units, is_empty))
    problems.emplace_back(
        "a profile is modelled for PyTorch with parameters in every unit and in the root, one or more an operator");
  return m;
}

}  // namespace

Model eager_model_of(const model::Config& model, Problems& problems) {
  return std::visit([&](const auto& family) -> Model { return of(family, problems); }, model);
}

}  // namespace foreshard::sim::torch
