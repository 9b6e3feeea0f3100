#include "sim/runtimes/transformers.hpp"

#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

const Architecture& architecture(const Decoder& d) {
  switch (d.family) {
    case Decoder::Family::gemma:
      return gemma_architecture;
    case Decoder::Family::gpt_neox:
      return gpt_neox_architecture;
    case Decoder::Family::llama:
      return llama_architecture;
    case Decoder::Family::mingpt:
      return mingpt_architecture;
    case Decoder::Family::mpt:
      return mpt_architecture;
    case Decoder::Family::opt:
      return opt_architecture;
    case Decoder::Family::phi:
      return phi_architecture;
    case Decoder::Family::gpt2:
      break;
  }
  return gpt2_architecture;
}

bool has_head_bias(const Decoder& d) { return d.family == Decoder::Family::phi; }

/// FSDP's mixed precision casts what a unit is given.
Shared cast_to(Eager& eager, Shared shared, DType type) {
  if (shared.alibi && type != DType::f32 && !shared.casts_buffers)
    shared.alibi = eager.empty(shared.decoder.heads * shared.decoder.positions, type);
  return shared;
}

/// As transformers 5.24 makes it: sdpa, which knows no window, gets a mask as soon as the sequence is as long as the
/// window. Batches share it, unless positions are looked at.
void make_window_mask(Eager& eager, Shared& shared, bool of_positions) {
  const Batch& batch = shared.batch;
  if (eager.traits().passes_window) return;
  shared.window_mask = eager.empty_bytes((of_positions ? batch.tokens() : batch.seq) * batch.seq);
  eager.gpu().moves(shared.window_mask.bytes(), model::OpKind::add);
}

/// What one of the layers is given.
Shared of_layer(Shared shared, std::int64_t layer) {
  shared.windowed = has_window(shared.decoder, shared.batch, layer);
  return shared;
}

/// The decoder without its head.
Tensor hidden_states(Eager& eager, Wrapper& wrapper, const Decoder& d, const Batch& batch, const Storage& tokens,
                     bool recompute) {
  const Architecture& family = architecture(d);
  const Parameters& root = wrapper.parameters(0);
  std::vector<Tensor> scope;  // tensors that the module's local names hold to its end
  Shared shared{.decoder = d, .batch = batch, .casts_buffers = wrapper.casts_buffers()};
  Tensor x = family.embed(eager, root, shared, tokens, scope);
  const bool of_positions = family.masks_positions && eager.traits().attention_mask;
  if (of_positions && !has_window(d, batch, 0)) shared.mask = eager.empty_bytes(batch.tokens() * batch.seq);
  if (has_window(d, batch, d.layers - 1)) make_window_mask(eager, shared, of_positions);
  family.share(eager, shared, x.type);
  for (std::size_t unit = 1; unit <= static_cast<std::size_t>(d.layers); ++unit) {
    const Shared given = of_layer(cast_to(eager, shared, x.type), static_cast<std::int64_t>(unit) - 1);
    x = wrapper.forward(unit, x, [&](const Tensor& input) {
      const auto block = [&eager, &wrapper, &family, unit, given, input] {
        return family.run(eager, wrapper.parameters(unit), given, input);
      };
      return recompute ? eager.checkpointed(block) : block();
    });
  }
  x = family.final_norm(eager, root, x);
  return x;
}

/// transformers' ForCausalLMLoss: f32 logits, labels moved by one: of a single sequence a view, else a copy.
Tensor loss_of(Eager& eager, const Decoder& d, const Tensor& logits, const Batch& batch) {
  if (d.family == Decoder::Family::mingpt) return eager.cross_entropy(logits, eager.empty(batch.tokens(), DType::i64));
  const Tensor upcast = eager.to(logits, DType::f32);
  const Storage padded = eager.empty(batch.rows * (batch.seq + 1), DType::i64);
  const Storage targets = batch.rows == 1 ? padded : eager.empty(batch.tokens(), DType::i64);
  return eager.cross_entropy(upcast, targets);
}

Tensor head(Eager& eager, const Decoder& d, const Parameters& root, const Tensor& x, std::int64_t rows) {
  if (has_head_bias(d)) return eager.linear(x, root[root.size() - 2], root.back(), rows);
  return eager.linear(x, d.tied ? root.front() : root.back(), {}, rows);
}

}  // namespace

bool has_window(const Decoder& d, const Batch& batch, std::int64_t layer) {
  return d.has_window(layer) && batch.seq >= d.window;
}

UnitShapes unit_shapes(const Decoder& d) {
  UnitShapes units{architecture(d).root(d)};
  units.resize(static_cast<std::size_t>(d.layers) + 1, architecture(d).block(d));
  return units;
}

std::int64_t buffer_elements(const Decoder& d) {
  switch (d.family) {
    case Decoder::Family::gemma:
      return d.head_width() + 1;
    case Decoder::Family::llama:
      return d.head_width();
    case Decoder::Family::gpt_neox:
    case Decoder::Family::phi:
      return d.rotary_width;
    case Decoder::Family::mingpt:
      return d.layers * d.positions * d.positions;
    case Decoder::Family::gpt2:
    case Decoder::Family::mpt:
    case Decoder::Family::opt:
      break;
  }
  return 0;
}

Tensor causal_lm_loss(Eager& eager, Wrapper& wrapper, const Decoder& d, const Batch& batch, const Storage& tokens,
                      bool recompute) {
  Tensor logits;  // part of the model's output, which outlives its forward by the wrapper's hooks
  return wrapper.forward(0, {}, [&](const Tensor&) {
    const Tensor x = hidden_states(eager, wrapper, d, batch, tokens, recompute);
    logits = head(eager, d, wrapper.parameters(0), x, batch.tokens());
    return loss_of(eager, d, logits, batch);
  });
}

}  // namespace foreshard::sim::torch
