#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string_view>

/// How Hugging Face's configurations spell what decides a model's shape, and what their classes assume where a key is
/// missing. Sources: the configuration modules of transformers 4.28 to 5.24, and MosaicML's llm-foundry for MPT. A new
/// spelling is a word in this file.
namespace foreshard::model::hf {

template <std::size_t n>
using Names = std::array<std::string_view, n>;
using Spellings = std::span<const std::string_view>;

inline constexpr std::array<std::string_view, 3> width{"hidden_size", "n_embd", "d_model"};
inline constexpr std::array<std::string_view, 4> layers{"num_hidden_layers", "n_layer", "num_layers", "n_layers"};
inline constexpr std::array<std::string_view, 4> heads{"num_attention_heads", "n_head", "num_heads", "n_heads"};
inline constexpr std::array<std::string_view, 3> ffn_width{"intermediate_size", "n_inner", "d_ff"};
inline constexpr std::array<std::string_view, 1> vocab_size{"vocab_size"};
inline constexpr std::array<std::string_view, 3> positions{"max_position_embeddings", "n_positions", "max_seq_len"};
inline constexpr std::array<std::string_view, 2> kv_heads{"num_key_value_heads", "kv_n_heads"};
inline constexpr std::array<std::string_view, 2> head_width{"head_dim", "d_kv"};
inline constexpr std::array<std::string_view, 1> tied_head{"tie_word_embeddings"};
inline constexpr std::array<std::string_view, 5> norm_epsilon{"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps",
                                                              "norm_eps", "norm_epsilon"};
inline constexpr std::array<std::string_view, 3> activation{"hidden_act", "activation_function", "hidden_activation"};
inline constexpr std::array<std::string_view, 2> dtype{"dtype", "torch_dtype"};

/// Keys of models with experts; anything but null, false and 0 is refused.
inline constexpr std::array<std::string_view, 4> experts{"num_experts", "num_local_experts", "n_routed_experts",
                                                         "moe_num_experts"};
/// Configurations of several models in one file.
inline constexpr std::array<std::string_view, 5> nested{"text_config", "vision_config", "audio_config",
                                                        "language_config", "llm_config"};

/// A key of one family: the spelling that its own class uses, and what it assumes without one (0: see the family).
struct Size {
  std::string_view own;
  Spellings spellings;
  std::int64_t absent = 0;
};

/// What the configuration class of a decoder, or of what resembles one, declares.
struct Decoder {
  std::string_view model_type;
  Size width, layers, heads, ffn_width, vocab_size, positions;
  std::int64_t kv_heads = 0;       ///< where the key is missing; 0: as many as heads
  std::int64_t null_kv_heads = 0;  ///< where it is null
  bool tied_head = false;
  double norm_epsilon = 1e-6;
  std::string_view norm_epsilon_key = "rms_norm_eps";
};

inline constexpr Decoder gpt2{.model_type = "gpt2",
                              .width = {"n_embd", width, 768},
                              .layers = {"n_layer", layers, 12},
                              .heads = {"n_head", heads, 12},
                              .ffn_width = {"n_inner", ffn_width},
                              .vocab_size = {"vocab_size", vocab_size, 50257},
                              .positions = {"n_positions", positions, 1024},
                              .tied_head = true,
                              .norm_epsilon = 1e-5,
                              .norm_epsilon_key = "layer_norm_epsilon"};

inline constexpr Decoder llama{.model_type = "llama",
                               .width = {"hidden_size", width, 4096},
                               .layers = {"num_hidden_layers", layers, 32},
                               .heads = {"num_attention_heads", heads, 32},
                               .ffn_width = {"intermediate_size", ffn_width, 11008},
                               .vocab_size = {"vocab_size", vocab_size, 32000},
                               .positions = {"max_position_embeddings", positions, 2048}};

inline constexpr Decoder mistral{.model_type = "mistral",
                                 .width = {"hidden_size", width, 4096},
                                 .layers = {"num_hidden_layers", layers, 32},
                                 .heads = {"num_attention_heads", heads, 32},
                                 .ffn_width = {"intermediate_size", ffn_width, 14336},
                                 .vocab_size = {"vocab_size", vocab_size, 32000},
                                 .positions = {"max_position_embeddings", positions, 131072},
                                 .kv_heads = 8,
                                 .null_kv_heads = 8};

inline constexpr Decoder qwen2{.model_type = "qwen2",
                               .width = {"hidden_size", width, 4096},
                               .layers = {"num_hidden_layers", layers, 32},
                               .heads = {"num_attention_heads", heads, 32},
                               .ffn_width = {"intermediate_size", ffn_width, 22016},
                               .vocab_size = {"vocab_size", vocab_size, 151936},
                               .positions = {"max_position_embeddings", positions, 32768},
                               .kv_heads = 32};

inline constexpr Decoder mpt{.model_type = "mpt",
                             .width = {"d_model", width, 2048},
                             .layers = {"n_layers", layers, 24},
                             .heads = {"n_heads", heads, 16},
                             .ffn_width = {"expansion_ratio", {}, 4},
                             .vocab_size = {"vocab_size", vocab_size, 50368},
                             .positions = {"max_seq_len", positions, 2048},
                             .tied_head = true,
                             .norm_epsilon = 1e-5,
                             .norm_epsilon_key = "layer_norm_epsilon"};

inline constexpr Decoder t5{.model_type = "t5",
                            .width = {"d_model", width, 512},
                            .layers = {"num_layers", layers, 6},
                            .heads = {"num_heads", heads, 8},
                            .ffn_width = {"d_ff", ffn_width, 2048},
                            .vocab_size = {"vocab_size", vocab_size, 32128},
                            .positions = {"n_positions", positions, 512},
                            .tied_head = true,
                            .norm_epsilon = 1e-6,
                            .norm_epsilon_key = "layer_norm_epsilon"};

/// Of an encoder of images, without vocabulary and positions.
inline constexpr Decoder vit{.model_type = "vit",
                             .width = {"hidden_size", width, 768},
                             .layers = {"num_hidden_layers", layers, 12},
                             .heads = {"num_attention_heads", heads, 12},
                             .ffn_width = {"intermediate_size", ffn_width, 3072},
                             .vocab_size = {},
                             .positions = {},
                             .norm_epsilon = 1e-12,
                             .norm_epsilon_key = "layer_norm_eps"};

}  // namespace foreshard::model::hf
