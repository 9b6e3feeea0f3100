#include <array>

#include "sim/runtimes/transformers_blocks.hpp"

// Llama, Mistral, Qwen2, Qwen3, and Gemma, whose norm and embedding are others.
namespace foreshard::sim::torch {
namespace {

using model::Projection;
using Norm = Tensor (*)(Eager&, const Tensor& x, const Tensor& gain);

Shapes llama_root(const Decoder& d) { return rotary_root(d, false, false); }

struct Product {
  Projection projection;
  std::int64_t out = 0, in = 0;
  bool bias = false;
};
using Products = std::vector<Product>;

/// A block's products, those of one input together.
std::array<Products, 4> products_of(const Decoder& d) {
  using enum Projection;
  const std::int64_t all = d.attention_width(), shared = d.kv_heads * d.head_width();
  return {Products{{q, all, d.width, d.qkv_bias}, {k, shared, d.width, d.qkv_bias}, {v, shared, d.width, d.qkv_bias}},
          Products{{o, d.width, all, d.out_bias}},
          Products{{gate, d.ffn, d.width, d.ffn_bias}, {up, d.ffn, d.width, d.ffn_bias}},
          Products{{down, d.width, d.ffn, d.ffn_bias}}};
}

/// Weights and biases, and the matrices A and B beside what is adapted.
void add_products(Shapes& shapes, const Decoder& d, const Products& products) {
  for (const Product& p : products) {
    add_linear(shapes, p.out, p.in, p.bias, d.trains_base());
    if (d.lora.adapts(p.projection)) shapes.insert(shapes.end(), {{d.lora.rank, p.in}, {p.out, d.lora.rank}});
  }
}

Shapes block(const Decoder& d) {
  const auto norms = [&](std::int64_t width) { return ParameterShape{width, 1, d.trains_base()}; };
  const auto products = products_of(d);
  Shapes shapes;
  for (const Products* of_attention : {&products[0], &products[1]}) add_products(shapes, d, *of_attention);
  if (d.head_norms) shapes.insert(shapes.end(), 2, norms(d.head_width()));
  for (const Products* of_feed_forward : {&products[2], &products[3]}) add_products(shapes, d, *of_feed_forward);
  shapes.insert(shapes.end(), 2, norms(d.width));
  return shapes;
}

struct Linear {
  Tensor weight;
  std::optional<Tensor> bias;
  std::optional<Tensor> lora_a, lora_b;

  /// weight·x + bias, and as peft adds it, B·A·x scaled by a number.
  Tensor operator()(Eager& eager, const Tensor& x, std::int64_t rows) const {
    Tensor y = eager.linear(x, weight, bias, rows);
    if (!lora_a) return y;
    Tensor low = eager.linear(x, *lora_a, {}, rows);
    low = eager.linear(low, *lora_b, {}, rows);
    low = eager.scale(low);
    y = eager.add(y, low);
    return y;
  }
};

/// A block's parameters by name.
struct Block {
  Linear q, k, v, o, gate, up, down;
  Tensor q_norm, k_norm, first_norm, second_norm;
};

Block block_of(const Parameters& p, const Decoder& d) {
  std::size_t at = 0;
  const auto linear = [&](Linear& layer, Projection projection, bool bias) {
    layer.weight = p[at++];
    if (bias) layer.bias = p[at++];
    if (d.lora.adapts(projection)) layer.lora_a = p[at++], layer.lora_b = p[at++];
  };
  Block b;
  linear(b.q, Projection::q, d.qkv_bias), linear(b.k, Projection::k, d.qkv_bias);
  linear(b.v, Projection::v, d.qkv_bias), linear(b.o, Projection::o, d.out_bias);
  if (d.head_norms) b.q_norm = p[at++], b.k_norm = p[at++];
  linear(b.gate, Projection::gate, d.ffn_bias), linear(b.up, Projection::up, d.ffn_bias);
  linear(b.down, Projection::down, d.ffn_bias);
  b.first_norm = p[at++], b.second_norm = p[at++];
  return b;
}

/// How often transformers repeats keys and values: with a mask for each query head, else sdpa shares them itself.
std::int64_t repeats(const Shared& shared) {
  return shared.own_mask() ? shared.decoder.heads / shared.decoder.kv_heads : 1;
}

/// A single head is not copied but seen often.
Tensor for_each_query(Eager& eager, const Shared& shared, const Tensor& x) {
  const std::int64_t times = repeats(shared);
  return shared.decoder.kv_heads == 1 ? eager.expand(x, times * x.elements) : eager.repeat_heads(x, times);
}

Tensor grouped_attention(Eager& eager, const Shared& shared, const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor all_k = for_each_query(eager, shared, k), all_v = for_each_query(eager, shared, v);
  return attend(eager, shared, q, all_k, all_v);
}

/// A projection head by head, normalised if `gain` is there.
Tensor projected(Eager& eager, const Shared& shared, const Linear& layer, const Tensor& gain, bool copies,
                 const Tensor& x) {
  const Tensor y = eager.heads(layer(eager, x, shared.batch.tokens()), copies);
  return gain.storage ? rms_norm(eager, y, gain) : y;
}

/// Gradients of rotary and of repeated heads come head by head, those of the attention kernel as the projection lies.
Tensor attention(Eager& eager, const Block& b, const Shared& shared, const Tensor& x) {
  const Decoder& d = shared.decoder;
  Tensor q = projected(eager, shared, b.q, b.q_norm, d.heads > 1, x);
  Tensor k = projected(eager, shared, b.k, b.k_norm, d.kv_heads > 1, x);
  const Tensor v = projected(eager, shared, b.v, {}, repeats(shared) > 1 && d.kv_heads > 1, x);
  Tensor rotated_q = rotary(eager, shared, q), rotated_k = rotary(eager, shared, k);
  q = std::move(rotated_q), k = std::move(rotated_k);
  Tensor y = grouped_attention(eager, shared, q, k, v);
  y = b.o(eager, y, shared.batch.tokens());
  return y;
}

Tensor gated(Eager& eager, const Block& b, std::int64_t rows, const Tensor& x) {
  Tensor gate = b.gate(eager, x, rows);
  gate = eager.silu(gate);  // or gelu, which keeps the same
  const Tensor up = b.up(eager, x, rows);
  return eager.multiply(gate, up);
}

Tensor feed_forward(Eager& eager, const Block& b, std::int64_t rows, const Tensor& x) {
  const Tensor h = gated(eager, b, rows, x);
  return b.down(eager, h, rows);
}

template <Norm norm>
Tensor run(Eager& eager, const Parameters& parameters, const Shared& shared, const Tensor& x) {
  const Block b = block_of(parameters, shared.decoder);
  Tensor h = norm(eager, x, b.first_norm);
  h = attention(eager, b, shared, h);
  h = eager.add(x, h);
  const Tensor residual = h;
  h = norm(eager, h, b.second_norm);
  h = feed_forward(eager, b, shared.batch.tokens(), h);
  h = eager.add(residual, h);
  return h;
}

template <Norm norm>
Tensor final_norm(Eager& eager, const Parameters& root, const Tensor& x) {
  return norm(eager, x, root[1]);
}

Tensor normalised(Eager& eager, const Tensor& x, std::int64_t rows) {
  Tensor variance = eager.pow(x);
  variance = eager.rows_mean(variance, rows);
  Tensor factor = eager.shift(variance);
  variance = {};
  factor = eager.rsqrt(factor);
  return eager.multiply_broadcast(x, factor);
}

/// Gemma's: all in f32, and its gain is one more than the parameter.
Tensor gemma_norm(Eager& eager, const Tensor& x, const Tensor& gain) {
  Tensor h = normalised(eager, eager.to(x, DType::f32), x.elements / gain.elements);
  const Tensor factor = eager.shift(eager.to(gain, DType::f32));
  h = eager.multiply_broadcast(h, factor);
  return eager.to(h, x.type);
}

Tensor scaled_token_rows(Eager& eager, const Parameters& root, Shared& shared, const Storage& tokens,
                         std::vector<Tensor>& scope) {
  shared.positions = eager.empty(shared.batch.seq, DType::i64);
  const Tensor rows = eager.embedding(tokens, root[0], shared.batch.tokens() * shared.decoder.width);
  const bool casts_scale = rows.type != DType::f32 && !shared.casts_buffers;
  scope.push_back(eager.multiply_constant(rows, casts_scale ? eager.empty(1, rows.type) : Storage{}));
  return scope.back();
}

}  // namespace

/// In the first block, whose input has no gradient: all up to the first products that are adapted.
std::int64_t weights_before_trained(const Decoder& d) {
  if (d.trains_base()) return 0;
  std::int64_t weights = 0;
  for (const Products& products : products_of(d)) {
    bool adapted = false;
    for (const Product& p : products) {
      const bool adapts = d.lora.adapts(p.projection);
      weights += p.in * (p.out + (adapts ? d.lora.rank : 0));
      adapted |= adapts;
    }
    if (adapted) break;
  }
  return weights;
}

const Architecture llama_architecture{true,          llama_root,          block, share_rotary, token_rows,
                                      run<rms_norm>, final_norm<rms_norm>};
const Architecture gemma_architecture{
    true, llama_root, block, share_rotary, scaled_token_rows, run<gemma_norm>, final_norm<gemma_norm>};

}  // namespace foreshard::sim::torch
