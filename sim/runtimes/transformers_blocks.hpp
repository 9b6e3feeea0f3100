#pragma once
#include "sim/runtimes/transformers.hpp"

namespace foreshard::sim::torch {

/// What the blocks of one forward share.
struct Shared {
  Decoder decoder;
  Batch batch;
  Storage positions;  ///< i64 [seq]
  Storage mask;       ///< bool [batch, 1, seq, seq], if transformers makes one
  Storage cos, sin;   ///< rotary tables [1, seq, head width]
};

/// A block's forward, parameters in the order of unit_shapes.
Tensor gpt2_block(Eager& eager, const std::vector<Tensor>& parameters, const Shared& shared, const Tensor& x);
Tensor llama_block(Eager& eager, const std::vector<Tensor>& parameters, const Shared& shared, const Tensor& x);
/// RMSNorm of transformers' Llama: statistics and the normalised x in f32.
Tensor rms_norm(Eager& eager, const Tensor& x, const Tensor& gain);

/// Attention over heads with the layer's own copy of the mask.
Tensor attend(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k, const Tensor& v);

}  // namespace foreshard::sim::torch
