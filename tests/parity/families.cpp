#include "families.hpp"

namespace foreshard::parity {
namespace {

using model::OpKind;
using plan::Recompute;
using plan::Wrap;
using Mode = Recompute::Mode;
using Policy = Wrap::Policy;

Recompute of_kinds(std::vector<OpKind> kinds) { return {.mode = Mode::selective, .kinds = std::move(kinds)}; }

std::vector<Recompute> recomputes(std::vector<Recompute> own) {
  own.insert(own.end(), {{.mode = Mode::selective}, {.mode = Mode::full}, {.mode = Mode::full, .every = 2}});
  return own;
}

std::vector<Wrap> wraps(std::vector<std::string> classes) {
  return {{.policy = Policy::none},
          {.policy = Policy::blocks, .count = 2},
          {.policy = Policy::size, .count = 900},
          {.policy = Policy::classes, .names = std::move(classes)}};
}

Family gpt() {
  return {
      .name = "gpt",
      .model =
          model::GptConfig{.layers = 3, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 9, .ffn_width = 23},
      .frozen = {"h.0.*", "wpe.weight", "*.ln_2.*"},
      .wraps = wraps({"attn", "mlp"}),
      .recomputes =
          recomputes({of_kinds({OpKind::layer_norm, OpKind::gelu}), of_kinds({OpKind::linear, OpKind::add})})};
}

/// Heads of 6 numbers in a width of 15, three of queries for one of keys.
Family llama() {
  return {.name = "llama",
          .model = model::LlamaConfig{.layers = 3,
                                      .width = 15,
                                      .heads = 3,
                                      .vocab_size = 37,
                                      .max_seq_len = 11,
                                      .ffn_width = 23,
                                      .kv_heads = 1,
                                      .head_width = 6,
                                      .qkv_bias = true},
          .frozen = {"layers.0.*", "*.k_proj.*", "embed_tokens.weight", "norm.weight"},
          .wraps = wraps({"self_attn", "mlp"}),
          .recomputes = recomputes({of_kinds({OpKind::rms_norm, OpKind::rotary, OpKind::swiglu}),
                                    of_kinds({OpKind::linear, OpKind::add, OpKind::swiglu})})};
}

/// The same beside whose projections matrices of LoRA are trained, alone.
Family lora() {
  Family family = llama();
  family.name = "lora";
  std::get<model::LlamaConfig>(family.model).lora = {.rank = 3, .targets = 0x7F};
  family.frozen = {"embed_tokens.weight", "*_proj.weight", "*_proj.bias", "*norm.weight", "lm_head.weight"};
  return family;
}

Family mpt() {
  return {
      .name = "mpt",
      .model =
          model::MptConfig{.layers = 3, .width = 15, .heads = 3, .vocab_size = 37, .max_seq_len = 9, .ffn_width = 23},
      .frozen = {"blocks.1.*", "wte.weight"},
      .wraps = wraps({"attn", "ffn"}),
      .recomputes = recomputes({of_kinds({OpKind::attention, OpKind::gelu_exact})})};
}

/// All decoder blocks read what the encoder made, and all blocks of a stack the bias of its first.
Family t5() {
  return {.name = "t5",
          .model = model::T5Config{.layers = 2,
                                   .width = 14,
                                   .heads = 3,
                                   .vocab_size = 37,
                                   .decoder_layers = 3,
                                   .head_width = 5,
                                   .ffn_width = 23,
                                   .buckets = 6,
                                   .max_distance = 5,
                                   .feed_forward = model::T5Config::FeedForward::gated_gelu},
          .frozen = {"encoder.*", "*.relative_attention_bias.*"},
          .wraps = wraps({"SelfAttention", "DenseReluDense"}),
          .recomputes = recomputes({of_kinds({OpKind::attention, OpKind::full_attention, OpKind::geglu}),
                                    of_kinds({OpKind::linear, OpKind::add, OpKind::relative_bias})})};
}

constexpr std::int64_t patches = 6, patch_values = 7, classes = 5;

/// A bias that all keys share changes no softmax.
Family vit() {
  return {.name = "vit",
          .model = model::VitConfig{.layers = 3,
                                    .width = 15,
                                    .heads = 3,
                                    .ffn_width = 23,
                                    .patches = patches,
                                    .patch_values = patch_values,
                                    .classes = classes},
          .seq = patches + 1,
          .noise = "k_proj.bias",
          .frozen = {"embeddings.*", "layers.1.*"},
          .wraps = wraps({"attention", "mlp"}),
          .recomputes = recomputes({of_kinds({OpKind::full_attention, OpKind::gelu_exact})})};
}

/// Five heads, so that no vector or tile is full.
Family deepvit() {
  Family family = vit();
  family.name = "deepvit";
  auto& model = std::get<model::VitConfig>(family.model);
  model.heads = 5;
  model.reattention = true;
  family.frozen = {"embeddings.*", "layers.1.*", "*.reattn_weights"};
  family.recomputes = recomputes({of_kinds({OpKind::reattention, OpKind::gelu_exact})});
  return family;
}

/// Numbers between −1 and 1 of which f32 is exact, and halves are not.
train::Batch images(std::int64_t count, std::int64_t step) {
  train::Batch batch;
  for (std::int64_t n = 0; n < count; ++n) {
    batch.targets.push_back(n % 5 == 3 ? -1 : static_cast<std::int32_t>((n * n + step) % classes));
    for (std::int64_t i = 0; i < patches * patch_values; ++i)
      batch.images.push_back(static_cast<float>((5 * i * i + 11 * n + 3 * step) % 1021) / 510.5F - 1);
  }
  return batch;
}

}  // namespace

train::Batch Family::batch(std::int64_t rows, std::int64_t step) const {
  return std::holds_alternative<model::VitConfig>(model) ? images(rows, step) : formula_batch(rows, seq, 37, step, 5);
}

const std::vector<Family>& families() {
  static const std::vector<Family> all{gpt(), llama(), lora(), mpt(), t5(), vit(), deepvit()};
  return all;
}

Outcome without_noise(const Family& family, Outcome outcome) {
  if (family.noise.empty()) return outcome;
  for (Tensors* tensors : {&outcome.first_gradients, &outcome.weights})
    std::erase_if(*tensors, [&](const auto& tensor) { return tensor.first.ends_with(family.noise); });
  return outcome;
}

}  // namespace foreshard::parity
