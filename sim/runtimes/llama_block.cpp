#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

using Parameters = std::vector<Tensor>;

/// A block's parameters by name; biases as Qwen2 has them.
struct Block {
  const Tensor &q, &k, &v, &o, &gate, &up, &down, &first_norm, &second_norm;
  std::optional<Tensor> q_bias, k_bias, v_bias;
};

Block block_of(const Parameters& p) {
  if (p.size() == 9) return {p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], {}, {}, {}};
  return {p[0], p[2], p[4], p[6], p[7], p[8], p[9], p[10], p[11], p[1], p[3], p[5]};
}

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
Tensor attention(Eager& eager, const Block& p, const Shared& shared, const Tensor& x) {
  const std::int64_t rows = shared.batch.tokens();
  Tensor q = eager.heads(eager.linear(x, p.q, p.q_bias, rows), true);
  Tensor k = eager.heads(eager.linear(x, p.k, p.k_bias, rows), true);
  const Tensor v = eager.heads(eager.linear(x, p.v, p.v_bias, rows), repeats(shared) > 1);
  Tensor rotated_q = rotary(eager, shared, q), rotated_k = rotary(eager, shared, k);
  q = std::move(rotated_q), k = std::move(rotated_k);
  Tensor y = grouped_attention(eager, shared, q, k, v);
  y = eager.linear(y, p.o, {}, rows);
  return y;
}

Tensor gated(Eager& eager, const Block& p, std::int64_t rows, const Tensor& x) {
  Tensor gate = eager.linear(x, p.gate, {}, rows);
  gate = eager.silu(gate);
  const Tensor up = eager.linear(x, p.up, {}, rows);
  return eager.multiply(gate, up);
}

Tensor feed_forward(Eager& eager, const Block& p, std::int64_t rows, const Tensor& x) {
  const Tensor h = gated(eager, p, rows, x);
  return eager.linear(h, p.down, {}, rows);
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

Tensor llama_block(Eager& eager, const Parameters& parameters, const Shared& shared, const Tensor& x) {
  const Block p = block_of(parameters);
  Tensor h = rms_norm(eager, x, p.first_norm);
  h = attention(eager, p, shared, h);
  h = eager.add(x, h);
  const Tensor residual = h;
  h = rms_norm(eager, h, p.second_norm);
  h = feed_forward(eager, p, shared.batch.tokens(), h);
  h = eager.add(residual, h);
  return h;
}

}  // namespace foreshard::sim::torch
