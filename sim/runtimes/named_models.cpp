#include "sim/runtimes/named_models.hpp"

namespace foreshard::sim::torch {
namespace {

using Family = Decoder::Family;

constexpr std::int64_t gpt2_vocab = 50257, opt_vocab = 50272, long_positions = 4096, mpt_positions = 2048;

Decoder gpt2(std::int64_t width, std::int64_t layers, std::int64_t heads) {
  return {.family = Family::gpt2,
          .width = width,
          .ffn = 4 * width,
          .layers = layers,
          .heads = heads,
          .kv_heads = heads,
          .vocab = gpt2_vocab,
          .positions = long_positions};
}

/// Arguments as LlamaConfig's: width, feed-forward, layers, heads, key-value heads, vocabulary, tied.
struct Sizes {
  std::int64_t width, ffn, layers, heads, kv_heads, vocab;
  bool tied;
};

Decoder of(Family family, const Sizes& s) {
  return {.family = family,
          .width = s.width,
          .ffn = s.ffn,
          .layers = s.layers,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .vocab = s.vocab,
          .tied = s.tied};
}

Decoder llama(const Sizes& s) { return of(Family::llama, s); }

Decoder llama_biased(const Sizes& s) {
  Decoder d = llama(s);
  d.qkv_bias = d.out_bias = d.ffn_bias = true;
  return d;
}

Decoder qwen2(const Sizes& s) {
  Decoder d = llama(s);
  d.qkv_bias = true;
  return d;
}

Decoder with_window(Decoder d, std::int64_t window, std::int64_t full_layers = 0) {
  d.window = window, d.full_layers = full_layers;
  return d;
}

Decoder with_head_width(Decoder d, std::int64_t head_width) {
  d.given_head_width = head_width;
  return d;
}

Decoder qwen3(const Sizes& s, std::int64_t head_width) {
  Decoder d = with_head_width(llama(s), head_width);
  d.head_norms = true;
  return d;
}

Decoder gemma(const Sizes& s, std::int64_t head_width) { return with_head_width(of(Family::gemma, s), head_width); }

/// Part of each head is rotated: a quarter in GPT-NeoX, a half in Phi.
Decoder partly_rotary(Family family, const Sizes& s, std::int64_t divisor) {
  Decoder d = of(family, s);
  d.rotary_width = d.head_width() / divisor;
  return d;
}
Decoder neox(const Sizes& s) { return partly_rotary(Family::gpt_neox, s, 4); }
Decoder phi(const Sizes& s) { return partly_rotary(Family::phi, s, 2); }

Decoder opt(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t vocab = opt_vocab) {
  Decoder d = gpt2(width, layers, heads);
  d.family = Family::opt, d.vocab = vocab;
  return d;
}

Decoder mpt(std::int64_t width, std::int64_t layers, std::int64_t heads, std::int64_t vocab) {
  Decoder d = opt(width, layers, heads, vocab);
  d.family = Family::mpt, d.positions = mpt_positions;
  return d;
}

T5 untied(T5 t5) {
  t5.tied = false;
  return t5;
}

}  // namespace

const std::map<std::string, Model>& named_models() {
  static const std::map<std::string, Model> models{
      {"gpt2", gpt2(768, 12, 12)},
      {"gpt2-medium", gpt2(1024, 24, 16)},
      {"gpt2-large", gpt2(1280, 36, 20)},
      {"gpt2-xl", gpt2(1600, 48, 25)},
      {"gpt2-tiny", gpt2(128, 3, 4)},
      {"llama-tiny", llama({128, 352, 3, 8, 2, 512, true})},
      {"llama-mha", llama({128, 352, 2, 8, 8, 512, false})},
      {"llama-odd", llama({120, 331, 2, 6, 3, 509, false})},
      {"llama-wide", with_head_width(llama({128, 352, 2, 8, 2, 512, false}), 24)},
      {"llama-biased", llama_biased({128, 352, 2, 8, 2, 512, false})},
      {"llama2-7b", llama({4096, 11008, 32, 32, 32, 32000, false})},
      {"llama2-13b", llama({5120, 13824, 40, 40, 40, 32000, false})},
      {"llama3-1b", llama({2048, 8192, 16, 32, 8, 128256, true})},
      {"llama3-8b", llama({4096, 14336, 32, 32, 8, 128256, false})},
      {"llama3-70b", llama({8192, 28672, 80, 64, 8, 128256, false})},
      {"mistral-7b", llama({4096, 14336, 32, 32, 8, 32000, false})},
      {"mistral-window", with_window(llama({128, 352, 2, 8, 2, 512, false}), 32)},
      {"qwen2-window", with_window(qwen2({128, 352, 3, 8, 2, 512, true}), 32, 1)},
      {"qwen2-0.5b", qwen2({896, 4864, 24, 14, 2, 151936, true})},
      {"qwen2-7b", qwen2({3584, 18944, 28, 28, 4, 152064, false})},
      {"qwen3-tiny", qwen3({128, 352, 2, 4, 2, 512, true}, 64)},
      {"qwen3-0.6b", qwen3({1024, 3072, 28, 16, 8, 151936, true}, 128)},
      {"qwen3-8b", qwen3({4096, 12288, 36, 32, 8, 151936, false}, 128)},
      {"gemma-tiny", gemma({128, 352, 2, 4, 1, 512, true}, 64)},
      {"gemma-2b", gemma({2048, 16384, 18, 8, 1, 256000, true}, 256)},
      {"gemma-7b", gemma({3072, 24576, 28, 16, 16, 256000, true}, 256)},
      {"phi-tiny", phi({128, 512, 2, 4, 4, 512, false})},
      {"phi-2", phi({2560, 10240, 32, 32, 32, 51200, false})},
      {"neox-tiny", neox({128, 512, 2, 4, 4, 512, false})},
      {"pythia-1b", neox({2048, 8192, 16, 8, 8, 50304, false})},
      {"gpt-neox-20b", neox({6144, 24576, 44, 64, 64, 50432, false})},
      {"opt-tiny", opt(128, 2, 4, 512)},
      {"opt-125m", opt(768, 12, 12)},
      {"opt-1.3b", opt(2048, 24, 32)},
      {"opt-13b", opt(5120, 40, 40)},
      {"mpt-tiny", mpt(128, 3, 4, 512)},
      {"mpt-odd", mpt(120, 2, 6, 509)},
      {"mpt-1b", mpt(2048, 24, 16, 50368)},
      {"mpt-7b", mpt(4096, 32, 32, 50432)},
      {"t5-tiny", T5{128, 32, 256, 3, 4, 512, false}},
      {"t5-gated", T5{128, 16, 352, 2, 6, 512, true}},
      {"t5-small", T5{512, 64, 2048, 6, 8, 32128, false}},
      {"flan-t5-base", T5{768, 64, 2048, 12, 12, 32128, true}},
      {"t5-3b", T5{1024, 128, 16384, 24, 32, 32128, false}},
      {"t5-11b", T5{1024, 128, 65536, 24, 128, 32128, false}},
      {"t5-untied", untied(T5{128, 16, 352, 2, 6, 509, true})},
      {"t5-v1.1-small", untied(T5{512, 64, 1024, 8, 6, 32128, true})},
      {"t5-v1.1-xl", untied(T5{2048, 64, 5120, 24, 32, 32128, true})},
      {"vit-tiny", Vit{128, 512, 3, 4, 32, 8}},
      {"vit-base", Vit{768, 3072, 12, 12}},
      {"vit-large", Vit{1024, 4096, 24, 16}},
      {"vit-huge", Vit{1280, 5120, 32, 16, 224, 14}},
  };
  return models;
}

}  // namespace foreshard::sim::torch
