#include "sim/runtimes/transformers.hpp"

#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

using Shapes = std::vector<ParameterShape>;

Shapes gpt2_root(const Decoder& d) { return {{d.vocab, d.width}, {d.positions, d.width}, {d.width}, {d.width}}; }

Shapes gpt2_block(const Decoder& d) {
  return {{d.width}, {d.width}, {d.width, 3 * d.width}, {3 * d.width}, {d.width, d.width}, {d.width},
          {d.width}, {d.width}, {d.width, d.ffn},       {d.ffn},       {d.ffn, d.width},   {d.width}};
}

Shapes llama_root(const Decoder& d) {
  Shapes root{{d.vocab, d.width}, {d.width}};
  if (!d.tied) root.push_back({d.vocab, d.width});
  return root;
}

Shapes llama_block(const Decoder& d) {
  const std::int64_t kv = d.kv_heads * d.head_width();
  const Shapes behind{{d.width, d.width}, {d.ffn, d.width}, {d.ffn, d.width}, {d.width, d.ffn}, {d.width}, {d.width}};
  Shapes block{{d.width, d.width}, {kv, d.width}, {kv, d.width}};
  if (d.qkv_bias) block = {{d.width, d.width}, {d.width}, {kv, d.width}, {kv}, {kv, d.width}, {kv}};
  block.insert(block.end(), behind.begin(), behind.end());
  return block;
}

/// What the blocks of one forward share.
Shared shared_by_blocks(Eager& eager, const Decoder& d, const Batch& batch, const Storage& positions, DType type) {
  Shared shared{d, batch, positions, {}, {}, {}};
  if (eager.traits().attention_mask) shared.mask = eager.empty_bytes(batch.tokens() * batch.seq);
  if (d.family == Decoder::Family::llama) {
    shared.cos = eager.empty(batch.seq * d.head_width(), type);
    shared.sin = eager.empty(batch.seq * d.head_width(), type);
  }
  return shared;
}

Tensor embedded(Eager& eager, const Decoder& d, const Batch& batch, const Storage& tokens, const Storage& positions,
                const std::vector<Tensor>& root, std::vector<Tensor>& scope) {
  scope.push_back(eager.embedding(tokens, root[0], batch.tokens() * d.width));
  if (d.family == Decoder::Family::llama) return scope.back();
  scope.push_back(eager.embedding(positions, root[1], batch.seq * d.width));
  return eager.add(scope[0], scope[1]);
}

/// The decoder without its head.
Tensor hidden_states(Eager& eager, Wrapper& wrapper, const Decoder& d, const Batch& batch, const Storage& tokens,
                     bool recompute) {
  const bool gpt2 = d.family == Decoder::Family::gpt2;
  const auto& root = wrapper.parameters(0);
  std::vector<Tensor> scope;  // tensors that the module's local names hold to its end
  const Storage positions = eager.empty(batch.seq, DType::i64);
  Tensor x = embedded(eager, d, batch, tokens, positions, root, scope);
  const Shared shared = shared_by_blocks(eager, d, batch, positions, x.type);
  for (std::size_t unit = 1; unit <= static_cast<std::size_t>(d.layers); ++unit)
    x = wrapper.forward(unit, x, [&](const Tensor& input) {
      const auto block = [&eager, &wrapper, gpt2, unit, shared, input] {
        const auto& parameters = wrapper.parameters(unit);
        return gpt2 ? gpt2_block(eager, parameters, shared, input) : llama_block(eager, parameters, shared, input);
      };
      return recompute ? eager.checkpointed(block) : block();
    });
  x = gpt2 ? eager.layer_norm(x, root[2], root[3]) : rms_norm(eager, x, root[1]);
  return x;
}

/// transformers' ForCausalLMLoss: f32 logits, labels moved by one: of a single sequence a view, else a copy.
Tensor loss_of(Eager& eager, const Tensor& logits, const Batch& batch) {
  const Tensor upcast = eager.to(logits, DType::f32);
  const Storage padded = eager.empty(batch.rows * (batch.seq + 1), DType::i64);
  const Storage targets = batch.rows == 1 ? padded : eager.empty(batch.tokens(), DType::i64);
  return eager.cross_entropy(upcast, targets);
}

}  // namespace

UnitShapes unit_shapes(const Decoder& d) {
  const bool gpt2 = d.family == Decoder::Family::gpt2;
  UnitShapes units{gpt2 ? gpt2_root(d) : llama_root(d)};
  units.resize(static_cast<std::size_t>(d.layers) + 1, gpt2 ? gpt2_block(d) : llama_block(d));
  return units;
}

std::int64_t buffer_elements(const Decoder& d) { return d.family == Decoder::Family::llama ? d.head_width() : 0; }

Tensor causal_lm_loss(Eager& eager, Wrapper& wrapper, const Decoder& d, const Batch& batch, const Storage& tokens,
                      bool recompute) {
  Tensor logits;  // part of the model's output, which outlives its forward by the wrapper's hooks
  return wrapper.forward(0, {}, [&](const Tensor&) {
    const Tensor x = hidden_states(eager, wrapper, d, batch, tokens, recompute);
    const auto& root = wrapper.parameters(0);
    logits = eager.linear(x, d.tied ? root.front() : root.back(), {}, batch.tokens());
    return loss_of(eager, logits, batch);
  });
}

}  // namespace foreshard::sim::torch
