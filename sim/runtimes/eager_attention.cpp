#include <utility>

#include "sim/runtimes/eager.hpp"

// Operators of attention that is not fused, and what else newer families need.
namespace foreshard::sim::torch {

using model::OpKind;

Tensor Eager::add_bias(const Tensor& scores, const Tensor& bias) {
  const Tensor wide{{}, bias.elements, scores.type, {}};
  auto sum = maker(wide, scores.bytes()), d_bias = maker(bias, wide.bytes());
  const bool sums = bias.elements < scores.elements, casts = bias.type != scores.type;
  const bool wanted = bias.edge.wants_gradient();
  gpu_.moves(2 * scores.bytes() + bias.bytes(), OpKind::add);
  return made(like(scores), scores.elements, scores.type, {scores.edge, bias.edge},
              [=](const Gradients& g) -> Gradients {
                if (!wanted) return {g[0], {}};
                Storage d = sums ? sum() : g[0];
                if (casts) d = d_bias();
                return {g[0], d};
              });
}

Tensor Eager::bmm(const Tensor& a, const Tensor& b, const Matrices& s) {
  const Saved kept_a = save(a.storage), kept_b = save(b.storage);
  auto da = maker(a), db = maker(b);
  const std::int64_t elements = s.batch * s.m * s.n;
  gpu_.product(s.batch, s.m, s.n, s.k, a.type, OpKind::linear);
  return made(empty(elements, a.type), elements, a.type, {a.edge, b.edge},
              [=, this, type = a.type](const Gradients&) -> Gradients {
                const Storage operands[] = {kept_a.get(), kept_b.get()};
                gpu_.product(s.batch, s.m, s.k, s.n, type, OpKind::linear_input_grad);
                gpu_.product(s.batch, s.k, s.n, s.m, type, OpKind::linear_weight_grad);
                return {da(), db()};
              });
}

Tensor Eager::cat(const std::vector<Tensor>& parts) {
  Tensor whole{{}, 0, parts[0].type, {}};
  std::vector<Edge> edges;
  for (const Tensor& part : parts) whole.elements += part.elements, edges.push_back(part.edge);
  gpu_.moves(2 * whole.bytes(), OpKind::add);
  const std::size_t count = parts.size();
  return made(like(whole), whole.elements, whole.type, std::move(edges),
              [count](const Gradients& g) { return Gradients(count, g[0]); });
}

Tensor Eager::contiguous(const Tensor& x) {
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge}, [](const Gradients& g) -> Gradients { return {g[0]}; });
}

Tensor Eager::convolution(const Storage& x, const Tensor& weight, const Tensor& bias, std::int64_t elements) {
  const Saved kept_x = save(x), kept_weight = save(weight.storage);
  auto d_weight = maker(weight), d_bias = maker(bias, elements * size_bytes(weight.type));
  const std::int64_t out = bias.elements, in = weight.elements / out, rows = elements / out;
  gpu_.product(1, rows, out, in, weight.type, OpKind::linear);
  return made(empty(elements, weight.type), elements, weight.type, {weight.edge, bias.edge},
              [=, this, type = weight.type](const Gradients&) -> Gradients {
                const Storage operands[] = {kept_x.get(), kept_weight.get()};
                gpu_.product(1, out, in, rows, type, OpKind::linear_weight_grad);
                return {d_weight(), d_bias()};
              });
}

Tensor Eager::dropout(const Tensor& x) {
  const Storage mask = traits_.byte_dropout ? empty_bytes(x.elements) : like(x);
  const Saved kept = save(mask);
  auto dx = maker(x, 2 * x.bytes() + mask.bytes());
  gpu_.moves(2 * x.bytes() + mask.bytes(), OpKind::dropout);
  return made(like(x), x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage factors = kept.get();
    return {dx()};
  });
}

Tensor Eager::expand(const Tensor& x, std::int64_t elements) {
  auto sum = maker(x, elements * size_bytes(x.type));
  const bool same = elements == x.elements;
  return made(x.storage, elements, x.type, {x.edge},
              [=](const Gradients& g) -> Gradients { return {same ? g[0] : sum()}; });
}

Tensor Eager::gelu(const Tensor& x) { return saves_operand(x); }

Tensor Eager::masked_fill(const Tensor& x, const Storage& mask) {
  const Saved kept = save(mask);
  auto dx = maker(x, 2 * x.bytes());
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage filled = kept.get();
    return {dx()};
  });
}

Tensor Eager::multiply_promoted(const Tensor& x, const Tensor& factor) {
  const Saved kept_x = save(x.storage), kept_factor = save(factor.storage);
  const Tensor wide{{}, x.elements, factor.type, {}};
  auto product = maker(wide, 2 * wide.bytes() + x.bytes()), dx = maker(x, wide.bytes() + x.bytes());
  auto d_factor = maker(factor, wide.bytes());
  const bool casts = x.type != factor.type;
  gpu_.moves(x.bytes() + wide.bytes(), OpKind::add);
  return made(like(wide), x.elements, factor.type, {x.edge, factor.edge}, [=](const Gradients&) -> Gradients {
    Storage d_x, d_full_factor;
    {
      const Storage operands[] = {kept_x.get(), kept_factor.get()};
      d_x = product(), d_full_factor = product();
    }
    if (casts) d_x = dx();
    return {d_x, d_factor()};
  });
}

Tensor Eager::relu(const Tensor& x) {
  gpu_.moves(2 * x.bytes(), OpKind::gelu);
  return saves_result(like(x), x);
}

Tensor Eager::sdpa_math(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                        const MathAttention& s) {
  const auto matrices = [&](const Tensor& x) { return s.sequences > 1 ? contiguous(x) : x; };
  const std::int64_t batch = s.sequences * s.heads;
  const Tensor q = to(query, DType::f32), k = to(key, DType::f32), v = to(value, DType::f32);
  const Tensor scaled_q = scale(q);
  Tensor weights;
  {
    const Tensor scaled_k = scale(k);
    weights = bmm(matrices(scaled_q), matrices(scaled_k), {batch, s.seq, s.seq, s.head_width});
  }
  weights = add_bias(weights, bias);
  weights = softmax(weights);
  if (s.dropout) weights = dropout(weights);
  const Storage returned = weights.type == query.type ? Storage{} : empty(weights.elements, query.type);
  const Tensor y = heads(bmm(weights, matrices(v), {batch, s.seq, s.head_width, s.seq}), s.sequences > 1);
  return to(y, query.type);
}

Tensor Eager::softmax(const Tensor& x) {
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return saves_result(like(x), x);
}

Tensor Eager::where(const Storage& condition, const Tensor& x) { return masked_fill(x, condition); }

}  // namespace foreshard::sim::torch
