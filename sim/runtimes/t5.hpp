#pragma once
#include "sim/runtimes/transformers.hpp"

namespace foreshard::sim::torch {

/// `T5ForConditionalGeneration` of transformers: units are the root, the encoder's blocks, the decoder's blocks.
struct T5 {
  std::int64_t width = 0, head_width = 0, ffn = 0, layers = 0, heads = 0, vocab = 0;  ///< layers of each stack
  bool gated = false;    ///< feed-forward of two projections, as Flan-T5
  bool dropout = false;  ///< with a probability above 0
  /// Attention as transformers wrote it out before release 5: scores and weights in the compute type, softmax in f32.
  bool written_out = false;
  /// The decoder returns keys and values of both its attentions in training too, as transformers did before release 5
  /// unless told otherwise: a part of the model's output, which the training loop holds until backward has ended.
  bool returns_cache = false;
  /// The head's weight is the token table, and what it reads is scaled; else, as in T5 1.1, it has one of its own.
  bool tied = true;

  std::int64_t attention_width() const { return heads * head_width; }
};

UnitShapes unit_shapes(const T5& model);

/// The loss with `tokens` as input and as labels: both sequences have the batch's length.
Tensor seq2seq_loss(Eager& eager, Wrapper& wrapper, const T5& model, const Batch& batch, const Storage& tokens,
                    bool recompute);

}  // namespace foreshard::sim::torch
