#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

Shapes root(const Decoder& d) { return rotary_root(d, true, false); }

Shapes block(const Decoder& d) {
  Shapes shapes(4, {d.width});
  add_linear(shapes, 3 * d.width, d.width, true);
  add_linear(shapes, d.width, d.width, true);
  add_linear(shapes, d.ffn, d.width, true);
  add_linear(shapes, d.width, d.ffn, true);
  return shapes;
}

/// A head's part that is rotated, and the part that is not.
std::pair<Tensor, Tensor> parts(Eager& eager, const Shared& shared, const Tensor& x) {
  const std::int64_t rotated = x.elements / shared.decoder.head_width() * shared.decoder.rotary_width;
  return {eager.slice(x, rotated), eager.slice(x, x.elements - rotated)};
}

std::pair<Tensor, Tensor> rotated(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k) {
  const auto [q_part, q_rest] = parts(eager, shared, q);
  const auto [k_part, k_rest] = parts(eager, shared, k);
  Tensor turned_q = rotary(eager, shared, q_part), turned_k = rotary(eager, shared, k_part);
  turned_q = eager.cat({turned_q, q_rest});
  turned_k = eager.cat({turned_k, k_rest});
  return {turned_q, turned_k};
}

Tensor attention(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const std::int64_t part = x.elements;
  const Tensor joint = eager.heads(linear(eager, p, 4, shared, x), shared.decoder.heads > 1);
  const std::vector<Tensor> qkv = eager.split(joint, {part, part, part});
  const auto [q, k] = rotated(eager, shared, qkv[0], qkv[1]);
  Tensor y = attend(eager, shared, q, k, qkv[2], shared.decoder.heads > 1);
  y = linear(eager, p, 6, shared, y);
  return y;
}

Tensor feed_forward(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = linear(eager, p, 8, shared, x);
  h = eager.gelu(h);
  h = linear(eager, p, 10, shared, h);
  return h;
}

/// Attention and feed-forward side by side.
Tensor run(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const Tensor attended = attention(eager, p, shared, layer_norm(eager, p, 0, x));
  const Tensor fed = feed_forward(eager, p, shared, layer_norm(eager, p, 2, x));
  return eager.add(eager.add(fed, attended), x);
}

Tensor final_norm(Eager& eager, const Parameters& p, const Tensor& x) { return layer_norm(eager, p, 1, x); }

}  // namespace

const Architecture gpt_neox_architecture{true, root, block, share_rotary, token_rows, run, final_norm};

}  // namespace foreshard::sim::torch
