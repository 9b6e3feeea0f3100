#pragma once
#include "sim/runtimes/transformers.hpp"

namespace foreshard::sim::torch {

using Parameters = std::vector<Tensor>;
using Shapes = std::vector<ParameterShape>;

/// What the blocks of one forward share.
struct Shared {
  Decoder decoder;
  Batch batch;
  Storage positions;    ///< i64 [seq], as the model made them
  Storage mask;         ///< bool [batch, 1, seq, seq], if transformers makes one
  Storage window_mask;  ///< bool [batch or 1, 1, seq, seq] of the layers with a window, if it makes one of them
  Storage cos, sin;     ///< rotary tables [1, seq, rotated width]
  Storage alibi;        ///< [heads, 1, positions], f32 unless a unit's inputs are cast
  bool casts_buffers = false;
  bool windowed = false;  ///< this block has a window

  const Storage& own_mask() const { return windowed ? window_mask : mask; }
  /// Most keys of a query that the kernel knows itself; 0: all before it.
  std::int64_t kernel_window() const { return windowed && !window_mask ? decoder.window : 0; }
};

/// A family of decoders: what its modules do differently. Parameters come in the order of the shapes.
struct Architecture {
  bool masks_positions;  ///< transformers' mask knows the positions, and cannot see that they are plain in fake tensors
  Shapes (*root)(const Decoder&);
  Shapes (*block)(const Decoder&);
  /// Fills in what else the blocks share, of the compute type.
  void (*share)(Eager&, Shared&, DType);
  /// The first block's input; what the module's names hold to the end of its forward goes to `scope`.
  Tensor (*embed)(Eager&, const Parameters& root, Shared&, const Storage& tokens, std::vector<Tensor>& scope);
  Tensor (*run)(Eager&, const Parameters& block, const Shared&, const Tensor& x);
  Tensor (*final_norm)(Eager&, const Parameters& root, const Tensor& x);
};

extern const Architecture gemma_architecture, gpt2_architecture, gpt_neox_architecture, llama_architecture,
    mingpt_architecture, mpt_architecture, opt_architecture, phi_architecture;

// What several families do.

/// A linear layer's weight, and its bias if it has one.
void add_linear(Shapes& shapes, std::int64_t out, std::int64_t in, bool bias, bool trained = true);
/// A linear layer with bias, `at` its weight.
Tensor linear(Eager& eager, const Parameters& p, std::size_t at, const Shared& shared, const Tensor& x);
Tensor layer_norm(Eager& eager, const Parameters& p, std::size_t at, const Tensor& x);
/// RMSNorm of transformers' Llama: statistics and the normalised x in f32.
Tensor rms_norm(Eager& eager, const Tensor& x, const Tensor& gain);
/// Rows of the token table.
Tensor token_rows(Eager& eager, const Parameters& root, Shared& shared, const Storage& tokens,
                  std::vector<Tensor>& scope);
/// Token table, norm, and a head that may be tied.
Shapes rotary_root(const Decoder& decoder, bool norm_bias, bool head_bias);
void share_nothing(Eager&, Shared&, DType);
void share_rotary(Eager& eager, Shared& shared, DType type);
/// x·cos + rotate_half(x)·sin
Tensor rotary(Eager& eager, const Shared& shared, const Tensor& x);
/// A mask as additive numbers for each layer, then the fused kernel. `by_head`: the query lies head by head in memory.
Tensor attend(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k, const Tensor& v,
              bool by_head = false);
/// x, some of which is dropped where the model does so.
Tensor dropped(Eager& eager, bool dropout, const Tensor& x);
/// gpt2's, of parameters 8 to 11 of its block.
Tensor gpt2_feed_forward(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x);
/// transformers' NewGELUActivation: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), operator by operator.
Tensor new_gelu(Eager& eager, const Tensor& x);

}  // namespace foreshard::sim::torch
