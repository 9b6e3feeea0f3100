#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/runtimes/eager.hpp"

// Operators of attention that is not fused, and what else newer families need.
namespace foreshard::sim::torch {

using model::OpKind;

namespace {

/// Extents of each of `count` products of m × k by k × n, by how many elements there are of each matrix.
struct Extents {
  std::int64_t m, n, k;
};
Extents extents(std::int64_t a, std::int64_t b, std::int64_t result, std::int64_t count) {
  const double inner = std::sqrt(static_cast<double>(a) * static_cast<double>(b) / static_cast<double>(result * count));
  const std::int64_t k = std::max<std::int64_t>(1, std::llround(inner));
  return {a / count / k, b / count / k, k};
}

}  // namespace

Tensor Eager::bmm(const Tensor& a, const Tensor& b, std::int64_t elements, std::int64_t count) {
  const Saved kept_a = save(a.storage), kept_b = save(b.storage);
  auto da = maker(a), db = maker(b);
  const auto [m, n, k] = extents(a.elements, b.elements, elements, count);
  gpu_.product(count, m, n, k, a.type, OpKind::linear);
  return made(empty(elements, a.type), elements, a.type, {a.edge, b.edge},
              [=, this, type = a.type](const Gradients&) -> Gradients {
                const Storage operands[] = {kept_a.get(), kept_b.get()};
                gpu_.product(count, m, k, n, type, OpKind::linear_input_grad);
                gpu_.product(count, k, n, m, type, OpKind::linear_input_grad);
                return {da(), db()};
              });
}

Tensor Eager::cat(const std::vector<Tensor>& parts) {
  std::int64_t elements = 0;
  std::vector<Edge> edges;
  for (const Tensor& part : parts) elements += part.elements, edges.push_back(part.edge);
  const std::size_t count = parts.size();
  gpu_.moves(2 * elements * size_bytes(parts[0].type), OpKind::add);
  return made(empty(elements, parts[0].type), elements, parts[0].type, std::move(edges),
              [count](const Gradients& g) { return Gradients(count, g[0]); });
}

Tensor Eager::contiguous(const Tensor& x) {
  gpu_.moves(2 * bytes(x), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge}, [](const Gradients& g) -> Gradients { return {g[0]}; });
}

Tensor Eager::dropout(const Tensor& x) {
  const Storage mask = traits_.byte_dropout ? empty_bytes(x.elements) : like(x);
  const Saved kept = save(mask);
  auto dx = maker(x, 3 * bytes(x));
  gpu_.moves(3 * bytes(x), OpKind::dropout);
  return made(like(x), x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage factors = kept.get();
    return {dx()};
  });
}

Tensor Eager::convolution(const Storage& x, const Tensor& weight, const Tensor& bias, std::int64_t elements) {
  const Saved kept_x = save(x), kept_weight = save(weight.storage);
  const std::int64_t width = bias.elements, places = elements / width, patch = weight.elements / width;
  gpu_.product(1, places, width, patch, weight.type, OpKind::linear);
  auto d_weight = maker(weight), d_bias = maker(bias, elements * size_bytes(weight.type));
  return made(empty(elements, weight.type), elements, weight.type, {weight.edge, bias.edge},
              [=, this, type = weight.type](const Gradients&) -> Gradients {
                const Storage operands[] = {kept_x.get(), kept_weight.get()};
                gpu_.product(1, patch, width, places, type, OpKind::linear_weight_grad);
                return {d_weight(), d_bias()};
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
  auto dx = maker(x, 2 * bytes(x));
  gpu_.moves(2 * bytes(x), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage filled = kept.get();
    return {dx()};
  });
}

Tensor Eager::multiply_promoted(const Tensor& x, const Tensor& factor) {
  const Saved kept_x = save(x.storage), kept_factor = save(factor.storage);
  const Tensor wide{{}, x.elements, factor.type, {}};
  auto product = maker(wide, 2 * bytes(wide)), dx = maker(x, 2 * bytes(x)), d_factor = maker(factor, bytes(wide));
  const bool casts = x.type != factor.type;
  return made(product(), x.elements, factor.type, {x.edge, factor.edge}, [=](const Gradients&) -> Gradients {
    Storage d_x, d_full_factor;
    {
      const Storage operands[] = {kept_x.get(), kept_factor.get()};
      d_x = product(), d_full_factor = product();
    }
    if (casts) d_x = dx();
    return {d_x, d_factor()};
  });
}

Tensor Eager::relu(const Tensor& x) { return saves_result(like(x), x); }

Tensor Eager::add_bias(const Tensor& scores, const Tensor& bias) {
  const Tensor wide{{}, bias.elements, scores.type, {}};
  auto sum = maker(wide, bytes(scores)), d_bias = maker(bias, 2 * bytes(bias));
  gpu_.moves(2 * bytes(scores) + bytes(bias), OpKind::add);
  const bool sums = bias.elements < scores.elements, casts = bias.type != scores.type;
  return made(like(scores), scores.elements, scores.type, {scores.edge, bias.edge},
              [=](const Gradients& g) -> Gradients {
                Storage d = sums ? sum() : g[0];
                if (casts) d = d_bias();
                return {g[0], d};
              });
}

Tensor Eager::sdpa_math(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& bias,
                        std::int64_t batch, std::int64_t heads_count) {
  const auto matrices = [&](const Tensor& x) { return batch > 1 ? contiguous(x) : x; };
  const Tensor q = to(query, DType::f32), k = to(key, DType::f32), v = to(value, DType::f32);
  const Tensor scaled_q = scale(q);
  Tensor weights;
  {
    const Tensor scaled_k = scale(k);
    weights = bmm(matrices(scaled_q), matrices(scaled_k), batch * bias.elements, batch * heads_count);
  }
  weights = add_bias(weights, bias);
  weights = softmax(weights);
  const Storage returned = weights.type == query.type ? Storage{} : empty(weights.elements, query.type);
  const Tensor y = heads(bmm(weights, matrices(v), query.elements, batch * heads_count), batch > 1);
  return to(y, query.type);
}

Tensor Eager::softmax(const Tensor& x) { return saves_result(like(x), x); }

Tensor Eager::where(const Storage& condition, const Tensor& x) { return masked_fill(x, condition); }

}  // namespace foreshard::sim::torch
