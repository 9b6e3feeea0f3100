#pragma once
#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// A decoder of Hugging Face transformers, as far as its eager modules make tensors.
struct Decoder {
  enum class Family : std::uint8_t { gpt2, llama };
  Family family = Family::gpt2;
  std::int64_t width = 0, ffn = 0, layers = 0, heads = 0, kv_heads = 0, vocab = 0;
  std::int64_t positions = 0;  ///< rows of gpt2's position table
  bool tied = true;            ///< the head's weight is the token table
  bool qkv_bias = false;       ///< of the llama family: as Qwen2

  std::int64_t head_width() const { return width / heads; }
};

struct Batch {
  std::int64_t rows = 1, seq = 1;  ///< sequences, tokens of each
  std::int64_t tokens() const { return rows * seq; }
};

/// The parameters of the decoder: the root's and each block's.
UnitShapes unit_shapes(const Decoder& decoder);
/// f32 elements of buffers of the model (rotary frequencies, twice).
std::int64_t buffer_elements(const Decoder& decoder);

/// The loss of `...ForCausalLM(input_ids=tokens, labels=tokens)` of transformers 5.24, with each block checkpointed if
/// `recompute`. Only what PyTorch's graph saves outlives the call, and the loss.
Tensor causal_lm_loss(Eager& eager, Wrapper& wrapper, const Decoder& decoder, const Batch& batch, const Storage& tokens,
                      bool recompute);

}  // namespace foreshard::sim::torch
