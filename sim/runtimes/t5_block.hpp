#pragma once
#include "sim/runtimes/t5.hpp"

namespace foreshard::sim::torch {

/// What a block is given beside its parameters. Tensors that are not there yet have no storage.
struct T5Inputs {
  Tensor x;
  Tensor bias;                 ///< [1, heads, seq, seq]: the first block of a stack makes it
  Tensor encoded;              ///< the encoder's output, in the decoder
  Tensor encoded_bias;         ///< zeros of the same extent: the decoder's first block makes them
  std::vector<Storage> cache;  ///< keys and values that the block returns, where the model returns its cache
};

/// Where a block is.
struct T5Place {
  T5 model;
  Batch batch;
  bool is_decoder = false;
};

std::vector<ParameterShape> t5_block_shapes(const T5& model, bool is_decoder, bool is_first);
/// T5's norm: f32 statistics, x times a factor in f32, and no bias.
Tensor t5_norm(Eager& eager, const Tensor& x, const Tensor& gain);
/// The block's output in `x`, with the biases that it was given or made.
T5Inputs t5_block(Eager& eager, const std::vector<Tensor>& parameters, const T5Place& place, const T5Inputs& in);

}  // namespace foreshard::sim::torch
