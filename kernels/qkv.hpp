#pragma once
#include <type_traits>

#include "kernels/operand.hpp"

namespace foreshard::kernels {

/// Queries, keys and values, or their gradients, of all heads or of one: token r's are at q + r·q_stride,
/// k + r·kv_stride and v + r·kv_stride.
template <class T>
struct Qkv {
  T *q, *k, *v;
  std::int64_t q_stride, kv_stride;
};

/// Of all heads of operands apart, or all in q where the others are absent. `Operand` is Const or Mut.
template <class T, class Operand>
auto qkv_of(const Attention& o, const Operand& q, const Operand& k, const Operand& v) {
  auto* const first = as<T>(q);
  using Element = std::remove_pointer_t<decltype(as<T>(q))>;
  const std::int64_t inner = o.heads * o.width;
  if (!k.data) return Qkv<Element>{first, first + inner, first + 2 * inner, 3 * inner, 3 * inner};
  return Qkv<Element>{first, as<T>(k), as<T>(v), inner, o.keys() * o.width};
}

/// Of one head of queries, and of the keys and values that serve it, in one sequence.
template <class T>
constexpr Qkv<T> head_of(const Attention& o, const Qkv<T>& all, std::int64_t sequence, std::int64_t head) {
  const std::int64_t row = sequence * o.seq, q_at = row * all.q_stride + head * o.width,
                     kv_at = row * all.kv_stride + head / o.group() * o.width;
  return {all.q + q_at, all.k + kv_at, all.v + kv_at, all.q_stride, all.kv_stride};
}

}  // namespace foreshard::kernels
