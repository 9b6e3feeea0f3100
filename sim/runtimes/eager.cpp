#include "sim/runtimes/eager.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace foreshard::sim::torch {
namespace {

using model::OpKind;

/// A gradient that passes through unchanged.
Gradients same(const Gradients& g) { return {g[0]}; }

bool wants(const Tensor& x) { return x.edge.wants_gradient(); }

}  // namespace

Tensor Eager::made(const Storage& storage, std::int64_t elements, DType type, std::vector<Edge> next,
                   std::function<Gradients(const Gradients&)> backward) {
  if (std::ranges::none_of(next, &Edge::wants_gradient)) return {storage, elements, type, {}};
  return {storage, elements, type, {autograd_.record(std::move(next), std::move(backward)), 0, nullptr}};
}

std::function<Storage()> Eager::maker(const Tensor& x, std::int64_t moved) const {
  return [this, elements = x.elements, type = x.type, moved] {
    if (moved > 0) gpu_.moves(moved, OpKind::add);
    return empty(elements, type);
  };
}

std::function<Storage()> Eager::gradient_of(const Tensor& x, std::int64_t moved) const {
  if (!wants(x)) return [] { return Storage{}; };
  return maker(x, moved);
}

Tensor Eager::add(const Tensor& a, const Tensor& b) {
  const bool broadcast = b.elements < a.elements;
  auto sum = maker(b);
  gpu_.moves(2 * a.bytes() + b.bytes(), OpKind::add);
  return made(like(a), a.elements, a.type, {a.edge, b.edge},
              [=, this, size = a.bytes()](const Gradients& g) -> Gradients {
                if (broadcast) gpu_.moves(size, OpKind::add);
                return {g[0], broadcast ? sum() : g[0]};
              });
}

Tensor Eager::shift(const Tensor& x) {
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge}, same);
}

Tensor Eager::scale(const Tensor& x) {
  auto dx = maker(x, 2 * x.bytes());
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients { return {dx()}; });
}

Tensor Eager::to(const Tensor& x, DType type) {
  if (x.type == type) return x;
  const std::int64_t moved = x.elements * (size_bytes(x.type) + size_bytes(type));
  auto dx = maker(x, moved);
  gpu_.moves(moved, OpKind::cast);
  return made(empty(x.elements, type), x.elements, type, {x.edge},
              [=](const Gradients&) -> Gradients { return {dx()}; });
}

Tensor Eager::embedding(const Storage& indices, const Tensor& table, std::int64_t elements) {
  const Saved kept = save(indices, wants(table));
  const std::int64_t looked_up = elements * size_bytes(table.type);
  auto d_table = maker(table, table.bytes() + 3 * looked_up);
  gpu_.moves(2 * looked_up, OpKind::embedding);
  return made(empty(elements, table.type), elements, table.type, {table.edge}, [=](const Gradients&) -> Gradients {
    const Storage rows = kept.get();
    return {d_table()};
  });
}

Tensor Eager::layer_norm(const Tensor& x, const Tensor& gain, const std::optional<Tensor>& bias) {
  const Saved kept_x = save(x.storage), kept_gain = save(gain.storage);
  const Saved kept_bias = bias ? save(bias->storage) : Saved(Storage{});
  const Storage y = like(x);
  const DType stats = traits_.norm_stats_f32 ? DType::f32 : x.type;
  const std::int64_t rows = x.elements / gain.elements;
  const Saved mean = save(empty(rows, stats)), rstd = save(empty(rows, stats));
  gpu_.moves(2 * x.bytes(), OpKind::layer_norm);
  auto dx = maker(x, 3 * x.bytes()), d_gain = maker(gain, 2 * x.bytes()),
       d_bias = bias ? maker(*bias) : [] { return Storage{}; };
  return made(y, x.elements, x.type, {x.edge, gain.edge, bias ? bias->edge : Edge{}},
              [=](const Gradients&) -> Gradients {
                const Storage operands[] = {kept_x.get(), kept_gain.get(), kept_bias.get(), mean.get(), rstd.get()};
                return {dx(), d_gain(), d_bias()};
              });
}

Tensor Eager::linear(const Tensor& x, const Tensor& weight, const std::optional<Tensor>& bias, std::int64_t rows) {
  const std::int64_t in = x.elements / rows, out = weight.elements / in;
  const bool wants_x = wants(x), wants_weight = wants(weight);
  const Saved kept_x = save(x.storage, wants_weight), kept_weight = save(weight.storage, wants_x);
  auto dx = gradient_of(x), d_weight = maker(weight);
  const auto products = [=, this, type = x.type]() -> Gradients {
    const Storage operands[] = {kept_x.get(), kept_weight.get()};
    if (wants_x) gpu_.product(1, rows, in, out, type, OpKind::linear_input_grad);
    if (!wants_weight) return {dx(), {}};
    gpu_.product(1, out, in, rows, type, OpKind::linear_weight_grad);
    return {dx(), d_weight().transposed()};
  };
  gpu_.product(1, rows, out, in, x.type, OpKind::linear);
  const Storage y = empty(rows * out, x.type);
  if (!bias) return made(y, rows * out, x.type, {x.edge, weight.edge}, [=](const Gradients&) { return products(); });
  auto d_bias = gradient_of(*bias, rows * out * size_bytes(x.type));
  return made(y, rows * out, x.type, {x.edge, weight.edge, bias->edge}, [=](const Gradients&) {
    Gradients all = products();
    all.push_back(d_bias());
    return all;
  });
}

Tensor Eager::multiply(const Tensor& a, const Tensor& b) {
  const Saved kept_a = save(a.storage, wants(b)), kept_b = save(b.storage, wants(a));
  auto da = gradient_of(a, 3 * a.bytes()), db = gradient_of(b, 3 * a.bytes());
  gpu_.moves(2 * a.bytes() + b.bytes(), OpKind::add);
  return made(like(a), a.elements, a.type, {a.edge, b.edge}, [=](const Gradients&) -> Gradients {
    const Storage operands[] = {kept_a.get(), kept_b.get()};
    return {da(), db()};
  });
}

Tensor Eager::multiply_constant(const Tensor& x, const Storage& other) {
  const Saved kept = save(other, wants(x));
  auto dx = maker(x, 2 * x.bytes());
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage operand = kept.get();
    return {dx()};
  });
}

Tensor Eager::multiply_broadcast(const Tensor& x, const Tensor& factor) {
  const bool wants_factor = wants(factor);
  const Saved kept_x = save(x.storage, wants_factor), kept_factor = save(factor.storage, wants(x));
  auto full = maker(x, 3 * x.bytes()), dx = gradient_of(x, 2 * x.bytes()), d_factor = gradient_of(factor, x.bytes());
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge, factor.edge}, [=](const Gradients&) -> Gradients {
    Storage d_full, d_x;
    {
      const Storage operands[] = {kept_x.get(), kept_factor.get()};
      if (wants_factor) d_full = full();
      d_x = dx();
    }
    return {d_x, d_factor()};
  });
}

Tensor Eager::rows_mean(const Tensor& x, std::int64_t rows) {
  auto dx = maker(x, x.bytes());
  gpu_.moves(x.bytes(), OpKind::add);
  return made(empty(rows, x.type), rows, x.type, {x.edge}, [=](const Gradients&) -> Gradients { return {dx()}; });
}

Tensor Eager::pow(const Tensor& x) {
  const Saved kept = save(x.storage, wants(x));
  auto dx = maker(x, 3 * x.bytes()), powers = maker(x, 2 * x.bytes());
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return made(like(x), x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage operand = kept.get(), lower_power = powers(), factor = powers();
    return {dx()};
  });
}

Tensor Eager::rsqrt(const Tensor& x) {
  const Storage y = like(x);
  const Saved kept = save(y, wants(x));
  auto dx = maker(x, 3 * x.bytes());
  gpu_.moves(2 * x.bytes(), OpKind::add);
  return made(y, x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage result = kept.get(), cube = dx(), factor = dx();
    return {dx()};
  });
}

Tensor Eager::saves_operand(const Tensor& x) {
  const Saved kept = save(x.storage, wants(x));
  auto dx = maker(x, 3 * x.bytes());
  gpu_.moves(2 * x.bytes(), OpKind::gelu);
  return made(like(x), x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage operand = kept.get();
    return {dx()};
  });
}

Tensor Eager::silu(const Tensor& x) { return saves_operand(x); }

Tensor Eager::saves_result(const Storage& storage, const Tensor& x) {
  const Saved kept = save(storage, wants(x));
  auto dx = maker(x, 3 * x.bytes());
  return made(storage, x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients {
    const Storage result = kept.get();
    return {dx()};
  });
}

Tensor Eager::tanh(const Tensor& x) {
  gpu_.moves(2 * x.bytes(), OpKind::gelu);
  return saves_result(like(x), x);
}

Tensor Eager::sdpa(const Tensor& q, const Tensor& k, const Tensor& v, const Storage& mask, std::int64_t rows,
                   std::int64_t seq, const AttentionMask& seen) {
  const cost::Attention shape{1,           rows / seq,         seq,         q.elements / rows,
                              seen.causal, size_bytes(q.type), seen.window, seen.from_mask};
  gpu_.attention(shape, false);
  const bool any = wants(q) || wants(k) || wants(v);
  const Saved kept_q = save(q.storage, any), kept_k = save(k.storage, any), kept_v = save(v.storage, any);
  const Saved kept_mask = save(mask, any);
  const Storage y = like(q), log_sum_exp = empty(rows, DType::f32);
  const Saved kept_y = save(y, any), kept_lse = save(log_sum_exp, any);
  auto dq = maker(q), dk = maker(k), dv = maker(v);
  return made(y, q.elements, q.type, {q.edge, k.edge, v.edge}, [=, this](const Gradients&) -> Gradients {
    gpu_.attention(shape, true);
    const Storage operands[] = {kept_q.get(),    kept_k.get(), kept_v.get(),
                                kept_mask.get(), kept_y.get(), kept_lse.get()};
    return {dq(), dk(), dv()};
  });
}

Tensor Eager::heads(const Tensor& x, bool copies_gradient) {
  auto copy = maker(x, 2 * x.bytes());
  return made(x.storage, x.elements, x.type, {x.edge},
              [=](const Gradients& g) -> Gradients { return {copies_gradient ? copy() : g[0]}; });
}

Tensor Eager::slice(const Tensor& x, std::int64_t elements) {
  auto dx = maker(x, 2 * x.bytes());
  return made(x.storage, elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients { return {dx()}; });
}

Tensor Eager::rotate_half(const Tensor& x) {
  const Tensor first = slice(x, x.elements / 2), second = slice(x, x.elements / 2), negated = scale(second);
  return cat({negated, first});
}

Tensor Eager::repeat_heads(const Tensor& x, std::int64_t times) {
  if (times == 1) return x;
  auto sum = maker(x, (times + 1) * x.bytes());
  gpu_.moves((times + 1) * x.bytes(), OpKind::add);
  return made(empty(times * x.elements, x.type), times * x.elements, x.type, {x.edge},
              [=](const Gradients&) -> Gradients { return {sum()}; });
}

std::vector<Tensor> Eager::split(const Tensor& x, const std::vector<std::int64_t>& elements) {
  auto concatenated = maker(x, 2 * x.bytes());
  const Tensor whole =
      made(x.storage, x.elements, x.type, {x.edge}, [=](const Gradients&) -> Gradients { return {concatenated()}; });
  std::vector<Tensor> parts(elements.size(), whole);
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].elements = elements[i], parts[i].edge.output = i;
  return parts;
}

Tensor Eager::cross_entropy(const Tensor& logits, const Storage& targets) {
  auto d_logs = maker(logits, logits.bytes());
  gpu_.moves(3 * logits.bytes(), OpKind::cross_entropy);
  const Storage log_softmax = like(logits);
  const Tensor logs = saves_result(log_softmax, logits);
  const Saved kept_logs = save(log_softmax), kept_targets = save(targets), weight = save(empty(1, logits.type));
  return made(empty(1, logits.type), 1, logits.type, {logs.edge}, [=](const Gradients&) -> Gradients {
    const Storage operands[] = {kept_logs.get(), kept_targets.get(), weight.get()};
    return {d_logs()};
  });
}

}  // namespace foreshard::sim::torch
