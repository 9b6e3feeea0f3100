#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

using Parameters = std::vector<Tensor>;

Tensor attention(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const std::int64_t rows = shared.batch.tokens(), part = x.elements;
  const Tensor joint = eager.linear(x, p[2], p[3], rows);
  const std::vector<Tensor> qkv = eager.split(joint, {part, part, part});
  Tensor y = attend(eager, shared, qkv[0], qkv[1], qkv[2]);
  y = eager.linear(y, p[4], p[5], rows);
  return y;
}

/// transformers' NewGELUActivation: x/2 · (1 + tanh(√(2/π) · (x + 0.044715 x³))), operator by operator.
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

Tensor feed_forward(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = eager.linear(x, p[8], p[9], shared.batch.tokens());
  h = new_gelu(eager, h);
  h = eager.linear(h, p[10], p[11], shared.batch.tokens());
  return h;
}

}  // namespace

Tensor attend(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k, const Tensor& v) {
  Storage mask;
  if (shared.mask) mask = eager.empty(shared.batch.tokens() * shared.batch.seq, q.type);
  return eager.sdpa(q, k, v, mask, shared.batch.tokens() * shared.decoder.heads, shared.batch.seq);
}

Tensor gpt2_block(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = eager.layer_norm(x, p[0], p[1]);
  const Tensor attended = attention(eager, p, shared, h);
  h = eager.add(attended, x);
  const Tensor residual = h;
  h = eager.layer_norm(h, p[6], p[7]);
  const Tensor fed = feed_forward(eager, p, shared, h);
  h = eager.add(residual, fed);
  return h;
}

}  // namespace foreshard::sim::torch
