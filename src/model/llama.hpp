#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "model/batch_shape.hpp"
#include "model/graph.hpp"
#include "model/lora.hpp"

namespace foreshard::model {

/// A Llama-shaped decoder: rotary positions, pre-RMSNorm, SwiGLU, causal attention in which groups of query heads share
/// keys and values and may see a window of their sequence, no biases but those asked for. Mistral and Qwen2 are of this
/// shape too.
struct LlamaConfig {
  std::int64_t layers = 32, width = 4096, heads = 32, vocab_size = 32000, max_seq_len = 4096;
  std::int64_t ffn_width = 11008;
  std::int64_t kv_heads = 0;    ///< heads of keys and of values; 0 means as many as `heads`
  std::int64_t head_width = 0;  ///< 0 means width / heads
  bool tied_head = false;
  bool qkv_bias = false, output_bias = false, ffn_bias = false;
  double norm_epsilon = 1e-5, rope_theta = 10000;
  Lora lora;
  std::int64_t window = 0;       ///< the last tokens that a token sees, itself included; 0: all before it
  std::int64_t full_layers = 0;  ///< the first so many layers have no window
  std::int64_t key_heads() const { return kv_heads > 0 ? kv_heads : heads; }
  std::int64_t width_of_head() const { return head_width > 0 ? head_width : width / heads; }
  /// The window of a layer where it leaves out anything of a sequence of `seq` tokens, else 0.
  std::int64_t window_of(std::int64_t layer, std::int64_t seq) const {
    return layer >= full_layers && window < seq ? window : 0;
  }
};

/// Names that `llama_preset` knows: Llama 2 and 3, Mistral, Qwen2.5, and byte-level ones of our own.
std::vector<std::string_view> llama_presets();

/// The configuration of one of these presets.
LlamaConfig llama_preset(std::string_view name);

/// Everything wrong with a configuration, one sentence each; empty when it can be built.
std::vector<std::string> problems(const LlamaConfig& config, const BatchShape& shape);

/// The forward graph: unit 0 (root) holds the token table, final norm and head, unit i + 1 the i-th block. Names are
/// those of Hugging Face's Llama without its "model."; weights are stored [out, in], as there. Matrices of LoRA belong
/// to their projection, as lora_A.weight and lora_B.weight; with them all else is frozen.
Graph build_llama(const LlamaConfig& config, const BatchShape& shape, DType dtype = DType::f32);

}  // namespace foreshard::model
