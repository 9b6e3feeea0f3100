#include "sim/cost/shape.hpp"

#include <algorithm>
#include <cmath>

#include "model/attention_pairs.hpp"

namespace foreshard::sim::cost {
namespace {

using model::OpKind;
using model::Sizes;

double real(std::int64_t value) { return static_cast<double>(value); }

Shape product(double a, double b, double c, double work) {
  return {work, {std::max(a, 1.0), std::max(b, 1.0), std::max(c, 1.0)}};
}

Shape matrix_product(const Sizes& s) {
  return product(real(s.rows), real(s.cols), real(s.inner), real(s.rows) * real(s.cols) * real(s.inner));
}

/// Causal attention leaves out half of the pairs, and more within a window; all keys of full attention, of which a
/// sequence has `rows`, count twice.
Shape attention(const Sizes& s, bool full) {
  const double length = full ? 2 * real(s.rows) : model::equal_causal_length(s.seq, s.rows);
  const double pairs = real(s.batch) * real(s.heads) * real(s.seq) * length;
  const double width = real((s.inner + 15) / 16 * 16);
  return product(real(s.batch) * real(s.heads), real(s.seq), width, pairs * width);
}

/// Full attention that is as much longer as it computes more, since all of it is in cache like attention's.
Shape reattention(OpKind kind, const Sizes& s) {
  const OpKind like = kind == OpKind::reattention ? OpKind::full_attention : OpKind::full_attention_backward;
  Shape shape = attention(s, true);
  shape.work *= model::flops(kind, s) / model::flops(like, s);
  return shape;
}

/// As a product of square matrices with as many FLOPs.
Shape opaque(double flops) {
  const double side = std::cbrt(flops / 2);
  return product(side, side, side, flops / 2);
}

Shape elements(double count) { return product(count, 1, 1, count); }

}  // namespace

Shape shape_of(OpKind kind, const Sizes& s, bool accumulate) {
  switch (kind) {
    case OpKind::linear:
    case OpKind::linear_input_grad:
    case OpKind::linear_weight_grad:
      return matrix_product(s);
    case OpKind::opaque:
    case OpKind::opaque_backward:
      return opaque(model::flops(kind, s));
    case OpKind::attention:
    case OpKind::attention_backward:
      return attention(s, false);
    case OpKind::full_attention:
    case OpKind::full_attention_backward:
      return attention(s, true);
    case OpKind::reattention:
    case OpKind::reattention_backward:
      return reattention(kind, s);
    case OpKind::embedding_backward:
      return elements(real(s.rows) * real(s.cols) + (accumulate ? 0 : real(s.inner + s.seq) * real(s.cols)));
    default:
      return elements(real(s.rows) * real(std::max<std::int64_t>(s.cols, 1)));
  }
}

}  // namespace foreshard::sim::cost
