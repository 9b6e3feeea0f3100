#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "model/batch_shape.hpp"
#include "model/graph.hpp"

namespace foreshard::model {

/// A GPT-2-shaped decoder: learned positions, pre-LayerNorm, GELU, causal attention, biases.
struct GptConfig {
  std::int64_t layers = 12, width = 768, heads = 12, vocab_size = 50257, max_seq_len = 1024;
  std::int64_t ffn_width = 0;  ///< 0 means 4 × width
  bool tied_head = true;
  double dropout = 0;
  double norm_epsilon = 1e-5;
  std::int64_t inner_width() const { return ffn_width > 0 ? ffn_width : 4 * width; }
};

/// Names that `gpt_preset` knows: gpt2, gpt2-medium, gpt2-large, gpt2-xl, byte-tiny, byte-small, byte-medium.
std::vector<std::string_view> gpt_presets();

/// The configuration of one of these presets.
GptConfig gpt_preset(std::string_view name);

/// Everything wrong with a configuration, one sentence each; empty when it can be built.
std::vector<std::string> problems(const GptConfig& config, const BatchShape& shape);

/// The forward graph: unit 0 (root) holds embeddings, final norm and head, unit i + 1 the i-th block.
/// Parameter names and module paths are those of Hugging Face's GPT-2 without its "transformer.", but for the position
/// table, which belongs to module "wte" with the operator that reads it; weights are stored [out, in].
Graph build_gpt(const GptConfig& config, const BatchShape& shape, DType dtype = DType::f32);

}  // namespace foreshard::model
