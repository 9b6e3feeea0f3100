#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

Shapes root(const Decoder& d) {
  Shapes shapes{{d.vocab, d.width}, {d.positions, d.width}, {d.width}, {d.width}};
  if (!d.tied) shapes.push_back({d.vocab, d.width});
  return shapes;
}

Shapes block(const Decoder& d) {
  return {{d.width}, {d.width}, {d.width, 3 * d.width}, {3 * d.width}, {d.width, d.width}, {d.width},
          {d.width}, {d.width}, {d.width, d.ffn},       {d.ffn},       {d.ffn, d.width},   {d.width}};
}

Tensor embed(Eager& eager, const Parameters& p, Shared& shared, const Storage& tokens, std::vector<Tensor>& scope) {
  const Batch& batch = shared.batch;
  shared.positions = eager.empty(batch.seq, DType::i64);
  scope.push_back(eager.embedding(tokens, p[0], batch.tokens() * shared.decoder.width));
  scope.push_back(eager.embedding(shared.positions, p[1], batch.seq * shared.decoder.width));
  return dropped(eager, shared.decoder.dropout, eager.add(scope[0], scope[1]));
}

Tensor attention(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  const std::int64_t part = x.elements;
  const Tensor joint = linear(eager, p, 2, shared, x);
  const std::vector<Tensor> qkv = eager.split(joint, {part, part, part});
  Tensor y = attend(eager, shared, qkv[0], qkv[1], qkv[2]);
  y = linear(eager, p, 4, shared, y);
  y = dropped(eager, shared.decoder.dropout, y);
  return y;
}

Tensor run(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = layer_norm(eager, p, 0, x);
  const Tensor attended = attention(eager, p, shared, h);
  h = eager.add(attended, x);
  const Tensor residual = h;
  h = layer_norm(eager, p, 6, h);
  const Tensor fed = gpt2_feed_forward(eager, p, shared, h);
  h = eager.add(residual, fed);
  return h;
}

Tensor final_norm(Eager& eager, const Parameters& p, const Tensor& x) { return layer_norm(eager, p, 2, x); }

}  // namespace

Tensor gpt2_feed_forward(Eager& eager, const Parameters& p, const Shared& shared, const Tensor& x) {
  Tensor h = linear(eager, p, 8, shared, x);
  h = new_gelu(eager, h);
  h = linear(eager, p, 10, shared, h);
  h = dropped(eager, shared.decoder.dropout, h);
  return h;
}

const Architecture gpt2_architecture{true, root, block, share_nothing, embed, run, final_norm};

}  // namespace foreshard::sim::torch
