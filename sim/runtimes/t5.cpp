#include "sim/runtimes/t5.hpp"

#include "sim/runtimes/t5_block.hpp"
#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

/// One forward of the model, as its modules go through it.
class Seq2Seq {
 public:
  Seq2Seq(Eager& eager, Wrapper& wrapper, const T5& model, const Batch& batch, bool recompute)
      : eager_(eager), wrapper_(wrapper), model_(model), batch_(batch), recompute_(recompute) {}

  /// The loss, and `logits`, a part of the model's output.
  Tensor loss(const Storage& tokens, Tensor& logits) {
    const std::vector<Tensor>& root = wrapper_.parameters(0);
    const Tensor encoded = stack(tokens, {}, root[1]);
    const Storage shifted = eager_.empty(batch_.tokens(), DType::i64);
    const Tensor decoded = stack(shifted, encoded, root[2]);
    const Tensor read = model_.tied ? eager_.scale(decoded) : decoded;
    logits = eager_.linear(read, model_.tied ? root[0] : root[3], {}, batch_.tokens());
    const Tensor loss = eager_.cross_entropy(logits, tokens);
    loss.edge.node->pre.emplace_back([cache = std::move(cache_)] {});
    return loss;
  }

 private:
  /// Encoder, or decoder if there is something `encoded`.
  Tensor stack(const Storage& tokens, const Tensor& encoded, const Tensor& final_gain) {
    const std::vector<Tensor>& root = wrapper_.parameters(0);
    const Tensor embedded = eager_.embedding(tokens, root[0], batch_.tokens() * model_.width);
    const bool is_decoder = static_cast<bool>(encoded.storage);
    T5Inputs state{dropped(eager_, model_.dropout, embedded), {}, encoded, {}, {}};
    for (std::int64_t i = 0; i < model_.layers; ++i)
      state = block(static_cast<std::size_t>(is_decoder ? model_.layers + i : i) + 1, is_decoder, state);
    return dropped(eager_, model_.dropout, t5_norm(eager_, state.x, final_gain));
  }

  T5Inputs block(std::size_t unit, bool is_decoder, const T5Inputs& state) {
    const T5Place place{model_, batch_, is_decoder};
    T5Inputs result;
    const auto run = [&](const Wrapper::Tensors& in) -> Wrapper::Tensors {
      const auto forward = [&eager = eager_, &wrapper = wrapper_, unit, place,
                            given = T5Inputs{in[0], in[1], in[2], state.encoded_bias, {}}] {
        return t5_block(eager, wrapper.parameters(unit), place, given);
      };
      result = recompute_ ? eager_.checkpointed(forward) : forward();
      return {result.x, result.bias};
    };
    const Wrapper::Tensors out = wrapper_.forward(unit, {state.x, state.bias, state.encoded}, run);
    cache_.insert(cache_.end(), result.cache.begin(), result.cache.end());
    result.cache.clear(), result.encoded = state.encoded;
    return result;
  }

  Eager& eager_;
  Wrapper& wrapper_;
  T5 model_;
  Batch batch_;
  bool recompute_;
  std::vector<Storage> cache_;  ///< of all blocks
};

}  // namespace

UnitShapes unit_shapes(const T5& m) {
  UnitShapes units{{{m.vocab, m.width}, {m.width}, {m.width}}};
  if (!m.tied) units[0].push_back({m.vocab, m.width});
  for (const bool is_decoder : {false, true})
    for (std::int64_t i = 0; i < m.layers; ++i) units.push_back(t5_block_shapes(m, is_decoder, i == 0));
  return units;
}

Tensor seq2seq_loss(Eager& eager, Wrapper& wrapper, const T5& model, const Batch& batch, const Storage& tokens,
                    bool recompute) {
  Tensor logits;  // outlives the model's forward by the wrapper's hooks
  return wrapper.forward(
      0, {}, [&](const Tensor&) { return Seq2Seq(eager, wrapper, model, batch, recompute).loss(tokens, logits); });
}

}  // namespace foreshard::sim::torch
