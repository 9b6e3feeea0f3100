#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

Shapes root(const Decoder& d) { return rotary_root(d, true, true); }

Shapes block(const Decoder& d) {
  const std::int64_t q = d.attention_width(), kv = d.kv_heads * d.head_width();
  Shapes shapes;
  for (const std::int64_t out : {q, kv, kv}) add_linear(shapes, out, d.width, true);
  add_linear(shapes, d.width, q, true);
  add_linear(shapes, d.ffn, d.width, true);
  add_linear(shapes, d.width, d.ffn, true);
  shapes.insert(shapes.end(), 2, {d.width});
  return shapes;
}

/// A projection's part that is rotated, and the part that is not.
struct Parts {
  Tensor rotated, rest;
  Parts(Eager& eager, const Shared& shared, const Tensor& x) {
    const std::int64_t elements = x.elements / shared.decoder.head_width() * shared.decoder.rotary_width;
    rotated = eager.slice(x, elements);
    rest = eager.slice(x, x.elements - elements);
  }
};

Tensor attention(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const bool copies = shared.decoder.heads > 1;
  Tensor q = eager.heads(linear(eager, p, 0, shared, x), copies),
         k = eager.heads(linear(eager, p, 2, shared, x), copies);
  const Tensor v = linear(eager, p, 4, shared, x);
  Parts of_q(eager, shared, q), of_k(eager, shared, k);
  Tensor turned_q = rotary(eager, shared, of_q.rotated), turned_k = rotary(eager, shared, of_k.rotated);
  of_q.rotated = std::move(turned_q), of_k.rotated = std::move(turned_k);
  q = eager.cat({of_q.rotated, of_q.rest});
  k = eager.cat({of_k.rotated, of_k.rest});
  Tensor y = attend(eager, shared, q, k, v, copies);
  y = linear(eager, p, 6, shared, y);
  return y;
}

Tensor feed_forward(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = linear(eager, p, 8, shared, x);
  h = new_gelu(eager, h);
  h = linear(eager, p, 10, shared, h);
  return h;
}

/// Attention and feed-forward side by side behind one norm.
Tensor run(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const Tensor h = layer_norm(eager, p, 12, x);
  const Tensor attended = attention(eager, p, shared, h);
  const Tensor fed = feed_forward(eager, p, shared, h);
  return eager.add(eager.add(attended, fed), x);
}

Tensor final_norm(Eager& eager, const Parameters& p, const Tensor& x) { return layer_norm(eager, p, 1, x); }

}  // namespace

const Architecture phi_architecture{true, root, block, share_rotary, token_rows, run, final_norm};

}  // namespace foreshard::sim::torch
