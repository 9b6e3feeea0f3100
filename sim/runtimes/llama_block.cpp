#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

using Parameters = std::vector<Tensor>;

Tensor rotary(Eager& eager, const Shared& shared, const Tensor& x) {
  const Tensor direct = eager.multiply_constant(x, shared.cos);
  Tensor rotated = eager.rotate_half(x);
  rotated = eager.multiply_constant(rotated, shared.sin);
  return eager.add(direct, rotated);
}

/// How often transformers repeats keys and values: with a mask for each query head, else sdpa shares them itself.
std::int64_t repeats(const Shared& shared) { return shared.mask ? shared.decoder.heads / shared.decoder.kv_heads : 1; }

Tensor grouped_attention(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor all_k = eager.repeat_heads(k, repeats(shared)), all_v = eager.repeat_heads(v, repeats(shared));
  return attend(eager, shared, q, all_k, all_v);
}

/// Gradients of rotary and of repeated heads come head by head, those of the attention kernel as the projection lies.
Tensor attention(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const std::int64_t rows = shared.batch.tokens();
  Tensor q = eager.heads(eager.linear(x, p[0], {}, rows), true);
  Tensor k = eager.heads(eager.linear(x, p[1], {}, rows), true);
  const Tensor v = eager.heads(eager.linear(x, p[2], {}, rows), repeats(shared) > 1);
  Tensor rotated_q = rotary(eager, shared, q), rotated_k = rotary(eager, shared, k);
  q = std::move(rotated_q), k = std::move(rotated_k);
  Tensor y = grouped_attention(eager, shared, q, k, v);
  y = eager.linear(y, p[3], {}, rows);
  return y;
}

Tensor gated(Eager& eager, const Parameters& p, std::int64_t rows, const Tensor& x) {
  Tensor gate = eager.linear(x, p[4], {}, rows);
  gate = eager.silu(gate);
  const Tensor up = eager.linear(x, p[5], {}, rows);
  return eager.multiply(gate, up);
}

Tensor feed_forward(Eager& eager, const Parameters& p, std::int64_t rows, const Tensor& x) {
  const Tensor h = gated(eager, p, rows, x);
  return eager.linear(h, p[6], {}, rows);
}

}  // namespace

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

Tensor llama_block(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = rms_norm(eager, x, p[7]);
  h = attention(eager, p, shared, h);
  h = eager.add(x, h);
  const Tensor residual = h;
  h = rms_norm(eager, h, p[8]);
  h = feed_forward(eager, p, shared.batch.tokens(), h);
  h = eager.add(residual, h);
  return h;
}

}  // namespace foreshard::sim::torch
