#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {

void add_linear(Shapes& shapes, std::int64_t out, std::int64_t in, bool bias, bool trained) {
  shapes.push_back({out, in, trained});
  if (bias) shapes.push_back({out, 1, trained});
}

Shapes rotary_root(const Decoder& d, bool norm_bias, bool head_bias) {
  const bool trained = d.trains_base();
  Shapes root{{d.vocab, d.width, trained}, {d.width, 1, trained}};
  if (norm_bias) root.push_back({d.width, 1, trained});
  if (!d.tied) add_linear(root, d.vocab, d.width, head_bias, trained);
  return root;
}

Tensor linear(Eager& eager, const Parameters& p, std::size_t at, const Shared& shared, const Tensor& x) {
  return eager.linear(x, p[at], p[at + 1], shared.batch.tokens());
}

Tensor layer_norm(Eager& eager, const Parameters& p, std::size_t at, const Tensor& x) {
  return eager.layer_norm(x, p[at], p[at + 1]);
}

Tensor rms_norm(Eager& eager, const Tensor& x, const Tensor& gain) {
  Tensor h = eager.to(x, DType::f32);
  Tensor variance = eager.pow(h);
  variance = eager.rows_mean(variance, x.elements / gain.elements);
  Tensor factor = eager.shift(variance);
  factor = eager.rsqrt(factor);
  h = eager.multiply_broadcast(h, factor);
  factor = {};
  return eager.multiply_broadcast(eager.to(h, x.type), gain);
}

Tensor token_rows(Eager& eager, const Parameters& root, Shared& shared, const Storage& tokens,
                  std::vector<Tensor>& scope) {
  shared.positions = eager.empty(shared.batch.seq, DType::i64);
  scope.push_back(eager.embedding(tokens, root[0], shared.batch.tokens() * shared.decoder.width));
  return scope.back();
}

void share_nothing(Eager&, Shared&, DType) {}

void share_rotary(Eager& eager, Shared& shared, DType type) {
  const Decoder& d = shared.decoder;
  const std::int64_t width = d.rotary_width ? d.rotary_width : d.head_width();
  shared.cos = eager.empty(shared.batch.seq * width, type);
  shared.sin = eager.empty(shared.batch.seq * width, type);
}

Tensor rotary(Eager& eager, const Shared& shared, const Tensor& x) {
  const Tensor direct = eager.multiply_constant(x, shared.cos);
  Tensor rotated = eager.rotate_half(x);
  rotated = eager.multiply_constant(rotated, shared.sin);
  return eager.add(direct, rotated);
}

Tensor dropped(Eager& eager, bool dropout, const Tensor& x) { return dropout ? eager.dropout(x) : x; }

namespace {

/// Gradients come head by head.
Tensor attend_unfused(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k, const Tensor& v,
                      const Storage& mask) {
  const Decoder& d = shared.decoder;
  const Tensor bias{mask, shared.batch.tokens() * shared.batch.seq, q.type, {}};
  const auto heads = [&](const Tensor& x) { return eager.heads(x, d.heads > 1); };
  const MathAttention shape{shared.batch.rows, d.heads, shared.batch.seq, d.head_width(), d.dropout};
  return eager.contiguous(eager.sdpa_math(heads(q), heads(k), heads(v), bias, shape));
}

}  // namespace

Tensor attend(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k, const Tensor& v, bool by_head) {
  const bool unfused = shared.decoder.dropout && !eager.traits().fused_dropout;
  Storage mask;
  if (shared.own_mask() || unfused) mask = eager.empty(shared.batch.tokens() * shared.batch.seq, q.type);
  if (shared.windowed && mask)
    eager.gpu().moves(mask.bytes() + shared.batch.tokens() * shared.batch.seq, model::OpKind::add);
  if (unfused) return attend_unfused(eager, shared, q, k, v, mask);
  const AttentionMask seen{.window = shared.kernel_window(), .from_mask = shared.windowed && mask};
  const Tensor y = eager.sdpa(q, k, v, mask, shared.batch.tokens() * shared.decoder.heads, shared.batch.seq, seen);
  return by_head && eager.traits().attention_like_query ? eager.contiguous(y) : y;
}

Tensor new_gelu(Eager& eager, const Tensor& x) {
  const Tensor half = eager.scale(x);
  Tensor t = eager.pow(x);
  t = eager.scale(t);
  t = eager.add(x, t);
  t = eager.scale(t);
  t = eager.tanh(t);
  t = eager.shift(t);
  return eager.multiply(half, t);
}

}  // namespace foreshard::sim::torch
