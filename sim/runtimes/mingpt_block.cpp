#include "sim/runtimes/transformers_blocks.hpp"

// Karpathy's minGPT: attention written out, dropout of its weights and of what both halves of a block add, a causal
// mask kept by each layer, and a loss in the compute type.
namespace foreshard::sim::torch {
namespace {

/// A part of the projection as matrices of heads: of one sequence as they lie, of several as copies.
Tensor matrices(Eager& eager, const Shared& shared, const Tensor& x) {
  const Tensor heads = eager.heads(x, true);
  return shared.batch.rows > 1 ? eager.contiguous(heads) : heads;
}

Matrices scores_shape(const Shared& shared) {
  const std::int64_t seq = shared.batch.seq;
  return {shared.batch.rows * shared.decoder.heads, seq, seq, shared.decoder.head_width()};
}

Tensor weights(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k) {
  const std::int64_t seq = shared.batch.seq;
  Tensor s = eager.scale(eager.bmm(matrices(eager, shared, q), matrices(eager, shared, k), scores_shape(shared)));
  const Storage mask = eager.empty_bytes(seq * seq);
  eager.gpu().moves((1 + size_bytes(s.type)) * seq * seq, model::OpKind::add);
  s = eager.masked_fill(s, mask);
  return eager.softmax(s);
}

Tensor attention(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const std::int64_t part = x.elements;
  const Tensor joint = linear(eager, p, 2, shared, x);
  const std::vector<Tensor> qkv = eager.split(joint, {part, part, part});
  const Tensor w = dropped(eager, shared.decoder.dropout, weights(eager, shared, qkv[0], qkv[1]));
  const Matrices scores = scores_shape(shared);
  Tensor y = eager.bmm(w, matrices(eager, shared, qkv[2]), {scores.batch, scores.m, scores.k, scores.n});
  y = eager.contiguous(y);
  y = linear(eager, p, 4, shared, y);
  return dropped(eager, shared.decoder.dropout, y);
}

Tensor run(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = layer_norm(eager, p, 0, x);
  h = attention(eager, p, shared, h);
  h = eager.add(x, h);
  const Tensor residual = h;
  h = layer_norm(eager, p, 6, h);
  h = gpt2_feed_forward(eager, p, shared, h);
  return eager.add(residual, h);
}

Tensor embed(Eager& eager, const Parameters& p, Shared& shared, const Storage& tokens, std::vector<Tensor>& scope) {
  return gpt2_architecture.embed(eager, p, shared, tokens, scope);
}
Shapes root(const Decoder& d) { return gpt2_architecture.root(d); }
Shapes block(const Decoder& d) { return gpt2_architecture.block(d); }
Tensor final_norm(Eager& eager, const Parameters& p, const Tensor& x) {
  return gpt2_architecture.final_norm(eager, p, x);
}

}  // namespace

const Architecture mingpt_architecture{false, root, block, share_nothing, embed, run, final_norm};

}  // namespace foreshard::sim::torch
