#pragma once
#include "model/lora.hpp"
#include "sim/runtimes/wrapper.hpp"

namespace foreshard::sim::torch {

/// A decoder of Hugging Face transformers, as far as its eager modules make tensors.
struct Decoder {
  enum class Family : std::uint8_t { gpt2, llama, gemma, gpt_neox, mingpt, mpt, opt, phi };
  Family family = Family::gpt2;
  std::int64_t width = 0, ffn = 0, layers = 0, heads = 0, kv_heads = 0, vocab = 0;
  std::int64_t positions = 0;               ///< rows of the position table (gpt2, opt); longest sequence (mpt)
  bool tied = true;                         ///< the head's weight is the token table
  bool qkv_bias = false;                    ///< of the llama family: as Qwen2
  std::int64_t given_head_width = 0;        ///< 0: the width over the heads
  bool head_norms = false;                  ///< of the llama family: norms of queries and keys, as Qwen3
  bool out_bias = false, ffn_bias = false;  ///< of the llama family
  std::int64_t rotary_width = 0;            ///< part of a head that is rotated (gpt_neox, phi)
  bool dropout = false;                     ///< with a probability above 0 (gpt2, mingpt, opt)
  std::int64_t window = 0;                  ///< most keys of a query (llama); 0: all before it
  std::int64_t full_layers = 0;             ///< the first so many layers have no window
  model::Lora lora;                         ///< of the llama family: as peft's, without dropout; all else is frozen

  bool trains_base() const { return lora.rank == 0; }
  bool has_window(std::int64_t layer) const { return window > 0 && layer >= full_layers; }

  std::int64_t head_width() const { return given_head_width ? given_head_width : width / heads; }
  std::int64_t attention_width() const { return heads * head_width(); }
};

struct Batch {
  std::int64_t rows = 1, seq = 1;  ///< sequences, tokens of each
  std::int64_t tokens() const { return rows * seq; }
};

/// The parameters of the decoder: the root's and each block's.
UnitShapes unit_shapes(const Decoder& decoder);
/// Elements of weights whose product needs no gradient of its input: it lies in front of all that is trained.
std::int64_t weights_before_trained(const Decoder& decoder);
/// f32 elements of the model's buffers (rotary frequencies, twice; a scale).
std::int64_t buffer_elements(const Decoder& decoder);

/// Whether a layer's window is felt in such sequences, so that sdpa, which knows no window, is given a mask.
bool has_window(const Decoder& decoder, const Batch& batch, std::int64_t layer);

/// The loss of `...ForCausalLM(input_ids=tokens, labels=tokens)` of transformers 5.24, with each block checkpointed if
/// `recompute`. Only what PyTorch's graph saves outlives the call, and the loss.
Tensor causal_lm_loss(Eager& eager, Wrapper& wrapper, const Decoder& decoder, const Batch& batch, const Storage& tokens,
                      bool recompute);

}  // namespace foreshard::sim::torch
