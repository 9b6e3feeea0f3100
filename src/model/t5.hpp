#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "model/batch_shape.hpp"
#include "model/graph.hpp"

namespace foreshard::model {

/// T5: an encoder, and a decoder that attends to its result; relative positions, pre-RMSNorm, no biases (Raffel et al.
/// 2019, arXiv 1910.10683). Encoder and decoder see sequences of equal length.
struct T5Config {
  enum class FeedForward : std::uint8_t { relu, gated_gelu, gated_silu };
  std::int64_t layers = 6, width = 512, heads = 8, vocab_size = 32128;
  std::int64_t decoder_layers = 0;  ///< 0 means as many as `layers`
  std::int64_t max_seq_len = 512;   ///< assumed where no length is asked for; longer ones are possible
  std::int64_t head_width = 64;     ///< heads × head_width need not be `width`
  std::int64_t ffn_width = 2048;
  std::int64_t buckets = 32;        ///< of relative positions
  std::int64_t max_distance = 128;  ///< from which on all are in one bucket
  bool tied_head = true;            ///< then what it reads is scaled by 1/√width, as in the first version
  FeedForward feed_forward = FeedForward::relu;
  double norm_epsilon = 1e-6;
  std::int64_t layers_of_decoder() const { return decoder_layers > 0 ? decoder_layers : layers; }
};

/// Names that `t5_preset` knows: t5-small to t5-11b, and byte-t5-small, whose tokens are bytes.
std::vector<std::string_view> t5_presets();
T5Config t5_preset(std::string_view name);

/// Everything wrong with a configuration, one sentence each; empty when it can be built.
std::vector<std::string> problems(const T5Config& config, const BatchShape& shape);

/// The forward graph: unit 0 (root) holds the table, final norms and head, then come the encoder's blocks and the
/// decoder's. The encoder reads the tokens; the decoder the targets, each row that of the target before, or token 0
/// where its sequence begins or that one is ignored. Names are those of Hugging Face.
Graph build_t5(const T5Config& config, const BatchShape& shape, DType dtype = DType::f32);

}  // namespace foreshard::model
