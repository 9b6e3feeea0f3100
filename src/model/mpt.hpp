#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "model/batch_shape.hpp"
#include "model/graph.hpp"

namespace foreshard::model {

/// An MPT-shaped decoder: no position table but linear biases on attention scores (ALiBi), pre-LayerNorm with a gain
/// only, exact GELU, no biases anywhere.
struct MptConfig {
  std::int64_t layers = 32, width = 4096, heads = 32, vocab_size = 50432, max_seq_len = 2048;
  std::int64_t ffn_width = 0;  ///< 0 means 4·width
  bool tied_head = true;
  double norm_epsilon = 1e-5;
  double alibi_max = 8;  ///< largest exponent of the biases' slopes
};

/// Names that `mpt_preset` knows: MPT's, and byte-level ones of our own.
std::vector<std::string_view> mpt_presets();

/// The configuration of one of these presets.
MptConfig mpt_preset(std::string_view name);

/// Everything wrong with a configuration, one sentence each; empty when it can be built.
std::vector<std::string> problems(const MptConfig& config, const BatchShape& shape);

/// The forward graph: unit 0 (root) holds the token table, final norm and untied head, unit i + 1 the i-th block. Names
/// are those of Hugging Face's MPT without its "transformer."; weights are stored [out, in], as there.
Graph build_mpt(const MptConfig& config, const BatchShape& shape, DType dtype = DType::f32);

}  // namespace foreshard::model
