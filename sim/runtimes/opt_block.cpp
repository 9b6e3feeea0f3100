#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

constexpr std::int64_t position_offset = 2;  ///< OPT's table begins with rows that no token uses

Shapes root(const Decoder& d) {
  return {{d.vocab, d.width}, {d.positions + position_offset, d.width}, {d.width}, {d.width}};
}

Shapes block(const Decoder& d) {
  Shapes shapes;
  for (int i = 0; i < 4; ++i) add_linear(shapes, d.width, d.width, true);
  shapes.insert(shapes.end(), 2, {d.width});
  add_linear(shapes, d.ffn, d.width, true);
  add_linear(shapes, d.width, d.ffn, true);
  shapes.insert(shapes.end(), 2, {d.width});
  return shapes;
}

/// Positions are counted on a mask of ones, which the model makes and keeps.
Tensor embed(Eager& eager, const Parameters& p, Shared& shared, const Storage& tokens, std::vector<Tensor>& scope) {
  const std::int64_t elements = shared.batch.tokens() * shared.decoder.width, rows = shared.batch.tokens();
  scope.push_back(eager.embedding(tokens, p[0], elements));
  scope.push_back({eager.empty(rows, DType::f32), rows, DType::f32, {}});
  shared.positions = eager.empty(rows, DType::i64);
  scope.push_back(eager.embedding(eager.empty(rows, DType::i64), p[1], elements));
  return eager.add(scope[0], scope[2]);
}

Tensor attention(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const Tensor q = eager.scale(linear(eager, p, 4, shared, x));
  const Tensor k = linear(eager, p, 0, shared, x);
  const Tensor v = linear(eager, p, 2, shared, x);
  Tensor y = attend(eager, shared, q, k, v);
  y = linear(eager, p, 6, shared, y);
  return y;
}

Tensor run(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = layer_norm(eager, p, 8, x);
  h = attention(eager, p, shared, h);
  h = dropped(eager, shared.decoder.dropout, h);
  h = eager.add(x, h);
  const Tensor residual = h;
  h = layer_norm(eager, p, 14, h);
  h = linear(eager, p, 10, shared, h);
  h = eager.relu(h);
  h = linear(eager, p, 12, shared, h);
  h = dropped(eager, shared.decoder.dropout, h);
  h = eager.add(residual, h);
  return h;
}

Tensor final_norm(Eager& eager, const Parameters& p, const Tensor& x) { return layer_norm(eager, p, 2, x); }

}  // namespace

const Architecture opt_architecture{false, root, block, share_nothing, embed, run, final_norm};

}  // namespace foreshard::sim::torch
