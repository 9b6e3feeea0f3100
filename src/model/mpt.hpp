#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "model/batch_shape.hpp"
#include "model/graph.hpp"

namespace foreshard::model {

/// MosaicML's MPT: a pre-LayerNorm decoder with one projection for queries, keys and values, exact GELU, and positions
/// by ALiBi or by a table. Defaults are those of the released models, without biases.
struct MptConfig {
  std::int64_t layers = 24, width = 2048, heads = 16, vocab_size = 50368, max_seq_len = 2048;
  std::int64_t ffn_width = 0;  ///< 0 means 4 × width
  bool tied_head = true;
  bool biases = false;             ///< of all projections and norms
  bool learned_positions = false;  ///< a table of max_seq_len rows
  double alibi_bias_max = 8;       ///< largest ALiBi bias; 0: no ALiBi
  double norm_epsilon = 1e-5;
  std::int64_t inner_width() const { return ffn_width > 0 ? ffn_width : 4 * width; }
};

/// Names that `mpt_preset` knows: the released models, those that llm-foundry benchmarks, and byte-level ones of our
/// own.
std::vector<std::string_view> mpt_presets();
MptConfig mpt_preset(std::string_view name);

/// Everything wrong with a configuration, one sentence each; empty when it can be built.
std::vector<std::string> problems(const MptConfig& config, const BatchShape& shape);

/// The forward graph: unit 0 (root) holds tables, final norm and head, unit i + 1 the i-th block. Names are those of
/// Hugging Face's MPT without its "transformer.".
Graph build_mpt(const MptConfig& config, const BatchShape& shape, DType dtype = DType::f32);

}  // namespace foreshard::model
