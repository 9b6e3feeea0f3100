#include "sim/runtimes/transformers_blocks.hpp"

// MPT's attention is not fused in transformers; ALiBi is added to the scores.
namespace foreshard::sim::torch {
namespace {

Shapes root(const Decoder& d) { return {{d.vocab, d.width}, {d.width}}; }

Shapes block(const Decoder& d) {
  return {{d.width}, {3 * d.width, d.width}, {d.width, d.width}, {d.width}, {d.ffn, d.width}, {d.width, d.ffn}};
}

/// The mask is made whatever attention needs, of bytes.
void share(Eager& eager, Shared& shared, DType) {
  shared.alibi = eager.empty(shared.decoder.heads * shared.decoder.positions, DType::f32);
  shared.mask = eager.empty_bytes(shared.batch.tokens() * shared.batch.seq);
}

Tensor embed(Eager& eager, const Parameters& p, Shared& shared, const Storage& tokens, std::vector<Tensor>& scope) {
  scope.push_back(eager.embedding(tokens, p[0], shared.batch.tokens() * shared.decoder.width));
  return scope.back();
}

/// A part of the projection as matrices of heads: of one sequence as they lie, of several as copies. Its gradient
/// comes head by head.
Tensor matrices(Eager& eager, const Shared& shared, const Tensor& x) {
  const Tensor heads = eager.heads(x, shared.decoder.heads > 1);
  return shared.batch.rows > 1 ? eager.contiguous(heads) : heads;
}

Tensor scores(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k) {
  const Batch& batch = shared.batch;
  const Matrices shape{batch.rows * shared.decoder.heads, batch.seq, batch.seq, shared.decoder.head_width()};
  return eager.scale(eager.bmm(matrices(eager, shared, q), matrices(eager, shared, k), shape));
}

Tensor weighted(Eager& eager, const Shared& shared, const Tensor& weights, const Tensor& v) {
  const Batch& batch = shared.batch;
  const Matrices shape{batch.rows * shared.decoder.heads, batch.seq, shared.decoder.head_width(), batch.seq};
  return eager.heads(eager.bmm(weights, matrices(eager, shared, v), shape), batch.rows > 1);
}

/// The sum has the wider type.
Tensor with_alibi(Eager& eager, const Shared& shared, const Tensor& s) {
  const std::int64_t elements = shared.decoder.heads * shared.decoder.positions;
  const bool is_wide = shared.alibi.bytes() > elements * size_bytes(s.type);
  return is_wide ? eager.to(s, DType::f32) : eager.shift(s);
}

Tensor weights(Eager& eager, const Tensor& s, DType type) {
  const Tensor w = eager.softmax(eager.to(s, DType::f32));
  return eager.to(w, type);
}

Tensor attention(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const std::int64_t rows = shared.batch.tokens(), part = x.elements;
  const Tensor joint = eager.linear(x, p[1], {}, rows);
  const std::vector<Tensor> qkv = eager.split(joint, {part, part, part});
  Tensor s = scores(eager, shared, qkv[0], qkv[1]);
  s = with_alibi(eager, shared, s);
  s = eager.masked_fill(s, shared.mask);
  const Tensor w = weights(eager, s, x.type);
  Tensor y = weighted(eager, shared, w, qkv[2]);
  y = eager.contiguous(y);
  return eager.linear(y, p[2], {}, rows);
}

Tensor feed_forward(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x, const Tensor& residual) {
  const std::int64_t rows = shared.batch.tokens();
  const Tensor h = eager.gelu(eager.linear(x, p[4], {}, rows));
  const Tensor fed = eager.linear(h, p[5], {}, rows);
  return eager.add(fed, residual);
}

Tensor run(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor normed = eager.layer_norm(x, p[0], {});
  const Tensor attended = attention(eager, p, shared, normed);
  const Tensor h = eager.add(attended, x);
  normed = eager.layer_norm(h, p[3], {});
  return feed_forward(eager, p, shared, normed, h);
}

Tensor final_norm(Eager& eager, const Parameters& p, const Tensor& x) { return eager.layer_norm(x, p[1], {}); }

}  // namespace

const Architecture mpt_architecture{false, root, block, share, embed, run, final_norm};

}  // namespace foreshard::sim::torch
