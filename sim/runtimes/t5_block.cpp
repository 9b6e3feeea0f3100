#include "sim/runtimes/t5_block.hpp"

#include "sim/runtimes/transformers_blocks.hpp"

namespace foreshard::sim::torch {
namespace {

constexpr std::int64_t buckets = 32;  ///< of relative positions, T5Config's default

/// A block's parameters in their order.
class Next {
 public:
  explicit Next(const Parameters& parameters) : parameters_(parameters) {}
  const Tensor& operator()() { return parameters_[at_++]; }

 private:
  const Parameters& parameters_;
  std::size_t at_ = 0;
};

std::int64_t bias_elements(const T5Place& place) { return place.model.heads * place.batch.seq * place.batch.seq; }

/// The table's rows for each pair of positions, as [seq, seq, heads] seen as [1, heads, seq, seq].
Tensor relative_bias(Eager& eager, const T5Place& place, const Tensor& table) {
  const Storage bucket = eager.empty(place.batch.seq * place.batch.seq, DType::i64);
  return eager.embedding(bucket, table, bias_elements(place));
}

/// transformers makes the bias contiguous in each layer, behind a causal mask in the decoder.
Tensor layers_bias(Eager& eager, const T5Place& place, const Tensor& bias) {
  if (!place.is_decoder) return eager.contiguous(bias);
  const Tensor causal = eager.where(eager.empty_bytes(place.batch.seq * place.batch.seq), bias);
  return eager.contiguous(causal);
}

Tensor written_out(Eager& eager, const T5Place& place, const Tensor& q, const Tensor& k, const Tensor& v,
                   const Tensor& bias) {
  const T5& m = place.model;
  const std::int64_t seq = place.batch.seq, count = place.batch.rows * m.heads;
  const auto matrices = [&](const Tensor& x) { return place.batch.rows > 1 ? eager.contiguous(x) : x; };
  Tensor w = eager.bmm(matrices(q), matrices(k), {count, seq, seq, m.head_width});
  w = eager.add(w, bias);
  w = eager.to(w, DType::f32);
  w = eager.softmax(w);
  w = eager.to(w, q.type);
  w = dropped(eager, m.dropout, w);
  return eager.contiguous(eager.heads(eager.bmm(w, matrices(v), {count, seq, m.head_width, seq}), false));
}

Tensor unfused(Eager& eager, const T5Place& place, const Tensor& q, const Tensor& k, const Tensor& v,
               const Tensor& bias) {
  const T5& m = place.model;
  if (m.written_out) return written_out(eager, place, q, k, v, bias);
  const MathAttention shape{place.batch.rows, m.heads, place.batch.seq, m.head_width, m.dropout};
  return eager.contiguous(eager.sdpa_math(q, k, v, bias, shape));
}

Tensor biased_attention(Eager& eager, const T5Place& place, const Tensor& q, const Tensor& k, const Tensor& v,
                        const Tensor& bias) {
  const Tensor added = place.model.written_out ? bias : layers_bias(eager, place, bias);
  return unfused(eager, place, q, k, v, added);
}

/// Where the model returns its cache, keys and values outlive the block.
void keep(const T5Place& place, const Tensor& k, const Tensor& v, std::vector<Storage>& cache) {
  if (place.model.returns_cache && place.is_decoder) cache.insert(cache.end(), {k.storage, v.storage});
}

Tensor self_attention(Eager& eager, const T5Place& place, Next& next, const Tensor& x, T5Inputs& out) {
  const std::int64_t rows = place.batch.tokens();
  const Tensor &wq = next(), &wk = next(), &wv = next(), &wo = next();
  const Tensor q = eager.heads(eager.linear(x, wq, {}, rows), true);
  const Tensor k = eager.heads(eager.linear(x, wk, {}, rows), true);
  const Tensor v = eager.heads(eager.linear(x, wv, {}, rows), true);
  keep(place, k, v, out.cache);
  if (!out.bias.storage) out.bias = relative_bias(eager, place, next());
  Tensor y = biased_attention(eager, place, q, k, v, out.bias);
  y = eager.linear(y, wo, {}, rows);
  return y;
}

Tensor cross_attention(Eager& eager, const T5Place& place, Next& next, const Tensor& x, const Tensor& encoded,
                       T5Inputs& out) {
  const std::int64_t rows = place.batch.tokens();
  const Tensor &wq = next(), &wk = next(), &wv = next(), &wo = next();
  const bool fused = !place.model.written_out && (!place.model.dropout || eager.traits().fused_dropout);
  const Tensor q = eager.heads(eager.linear(x, wq, {}, rows), !fused);
  const Tensor k = eager.heads(eager.linear(encoded, wk, {}, rows), !fused);
  const Tensor v = eager.heads(eager.linear(encoded, wv, {}, rows), !fused);
  keep(place, k, v, out.cache);
  Tensor& bias = out.encoded_bias;
  const std::int64_t elements = bias_elements(place);
  if (!bias.storage) bias = {eager.empty(elements, x.type), elements, x.type, {}};
  Tensor y = fused ? eager.sdpa(q, k, v, bias.storage, rows * place.model.heads, place.batch.seq, {.causal = false})
                   : unfused(eager, place, q, k, v, bias);
  y = eager.linear(y, wo, {}, rows);
  return y;
}

Tensor plain(Eager& eager, std::int64_t rows, bool dropout, Next& next, const Tensor& x) {
  Tensor h = eager.linear(x, next(), {}, rows);
  h = eager.relu(h);
  h = dropped(eager, dropout, h);
  h = eager.linear(h, next(), {}, rows);
  return h;
}

Tensor gated(Eager& eager, std::int64_t rows, bool dropout, Next& next, const Tensor& x) {
  const Tensor gate = new_gelu(eager, eager.linear(x, next(), {}, rows));
  const Tensor up = eager.linear(x, next(), {}, rows);
  Tensor h = eager.multiply(gate, up);
  h = dropped(eager, dropout, h);
  h = eager.linear(h, next(), {}, rows);
  return h;
}

Tensor feed_forward(Eager& eager, const T5Place& place, Next& next, const Tensor& x) {
  const std::int64_t rows = place.batch.tokens();
  const T5& m = place.model;
  return m.gated ? gated(eager, rows, m.dropout, next, x) : plain(eager, rows, m.dropout, next, x);
}

}  // namespace

Shapes t5_block_shapes(const T5& m, bool is_decoder, bool is_first) {
  const std::int64_t inner = m.attention_width();
  const Shapes attention{{inner, m.width}, {inner, m.width}, {inner, m.width}, {m.width, inner}};
  Shapes shapes = attention;
  if (is_first) shapes.push_back({buckets, m.heads});
  shapes.push_back({m.width});
  if (is_decoder) shapes.insert(shapes.end(), attention.begin(), attention.end()), shapes.push_back({m.width});
  shapes.insert(shapes.end(), m.gated ? 2 : 1, {m.ffn, m.width});
  shapes.push_back({m.width, m.ffn});
  shapes.push_back({m.width});
  return shapes;
}

Tensor t5_norm(Eager& eager, const Tensor& x, const Tensor& gain) {
  Tensor variance = eager.pow(eager.to(x, DType::f32));
  variance = eager.rows_mean(variance, x.elements / gain.elements);
  Tensor factor = eager.shift(variance);
  factor = eager.rsqrt(factor);
  Tensor h = eager.multiply_promoted(x, factor);
  factor = {};
  h = eager.to(h, gain.type);
  return eager.multiply_broadcast(h, gain);
}

/// A norm's gain comes behind the parameters of what it normalises for.
T5Inputs t5_block(Eager& eager, const Parameters& parameters, const T5Place& place, const T5Inputs& in) {
  const std::size_t self_norm = in.bias.storage ? 4 : 5;
  const bool dropout = place.model.dropout;
  T5Inputs out = in;
  Next next(parameters);
  {
    const Tensor normed = t5_norm(eager, in.x, parameters[self_norm]);
    const Tensor attended = self_attention(eager, place, next, normed, out);
    out.x = eager.add(in.x, dropped(eager, dropout, attended));
    next();
  }
  if (place.is_decoder) {
    const Tensor normed = t5_norm(eager, out.x, parameters[self_norm + 5]);
    const Tensor attended = cross_attention(eager, place, next, normed, in.encoded, out);
    out.x = eager.add(out.x, dropped(eager, dropout, attended));
    next();
  }
  Tensor fed = t5_norm(eager, out.x, parameters.back());
  fed = feed_forward(eager, place, next, fed);
  out.x = eager.add(out.x, dropped(eager, dropout, fed));
  return out;
}

}  // namespace foreshard::sim::torch
