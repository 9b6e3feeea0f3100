#include "kernels/cuda/cudnn/attention_graph.hpp"

#include <limits>
#include <utility>

#include "kernels/cuda/cudnn/graph_builder.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

/// The tensors of one shape of attention, by the names of their dimensions.
class AttentionBuilder {
 public:
  AttentionBuilder(const Attention& o, DType type, Layout layout)
      : o_(o), type_(type == DType::bf16 ? Element::bf16 : Element::f16), layout_(layout) {}

  Graph forward();
  Graph backward();

 private:
  TensorIndex rows(Operand operand, std::int64_t heads, std::int64_t stride) {
    return b_.operand(operand, {o_.batch, heads, o_.seq, o_.width}, {o_.seq * stride, o_.width, stride, 1}, type_);
  }
  TensorIndex of_queries(Operand operand) { return rows(operand, o_.heads, packed_or(o_.heads * o_.width)); }
  TensorIndex of_keys(Operand operand) { return rows(operand, o_.keys(), packed_or(o_.keys() * o_.width)); }
  TensorIndex of_outputs(Operand operand) { return rows(operand, o_.heads, o_.heads * o_.width); }
  TensorIndex statistics(Operand operand) {
    return b_.operand(operand, row_dims(), {o_.heads * o_.seq, o_.seq, 1, 1}, Element::f32);
  }
  std::int64_t packed_or(std::int64_t dense) const {
    return layout_ == Layout::packed ? 3 * o_.heads * o_.width : dense;
  }
  Dims row_dims() const { return {o_.batch, o_.heads, o_.seq, 1}; }
  Dims score_dims() const { return {o_.batch, o_.heads, o_.seq, o_.seq}; }

  /// q·kᵀ, which is [batch, heads, seq, seq] as all that follows from it.
  TensorIndex products(TensorIndex q, TensorIndex k_transposed) {
    return b_.make(Kind::matmul, {q, k_transposed}, score_dims());
  }
  TensorIndex scaled(TensorIndex x) {
    return o_.scaled ? b_.make(Kind::multiply, {x, b_.number(static_cast<float>(o_.scale()))}, score_dims()) : x;
  }
  TensorIndex masked(TensorIndex scores);
  TensorIndex where(TensorIndex scores, TensorIndex condition) {
    const TensorIndex never = b_.number(-std::numeric_limits<float>::infinity());
    return b_.make(Kind::select, {scores, never, condition}, score_dims());
  }
  TensorIndex index(TensorIndex scores, std::int64_t axis) {
    return b_.make(Kind::index, {scores}, score_dims(), Element::i32, axis);
  }
  TensorIndex row_sums();
  void key_gradient(TensorIndex of_scores, TensorIndex of_rows, Operand to);

  const Attention o_;
  const Element type_;
  const Layout layout_;
  GraphBuilder b_;
};

/// Token i sees j where i ≥ j, and j + window > i.
TensorIndex AttentionBuilder::masked(TensorIndex scores) {
  if (!o_.causal) return scores;
  const TensorIndex row = index(scores, 2), col = index(scores, 3);
  scores = where(scores, b_.make(Kind::at_least, {row, col}, score_dims(), Element::boolean));
  if (o_.window == 0 || o_.window >= o_.seq) return scores;
  const TensorIndex of_row = index(scores, 2), of_col = index(scores, 3);
  const TensorIndex end = b_.make(Kind::add, {of_col, b_.number(static_cast<float>(o_.window))}, score_dims());
  return where(scores, b_.make(Kind::greater, {end, of_row}, score_dims(), Element::boolean));
}

Graph AttentionBuilder::forward() {
  const TensorIndex q = of_queries(Operand::q), k = of_keys(Operand::k), v = of_keys(Operand::v);
  const TensorIndex y = of_outputs(Operand::y), log_sum_exp = statistics(Operand::log_sum_exp);
  const TensorIndex scores = masked(scaled(products(q, b_.transposed_view(k))));
  const TensorIndex highest = b_.make(Kind::largest, {scores}, row_dims());
  const TensorIndex weights =
      b_.make(Kind::exp, {b_.make(Kind::subtract, {scores, highest}, score_dims())}, score_dims());
  const TensorIndex total = b_.make(Kind::sum, {weights}, row_dims());
  b_.write(Kind::add, {highest, b_.make(Kind::log, {total}, row_dims())}, log_sum_exp);
  b_.write(Kind::matmul, {b_.make(Kind::divide, {weights, total}, score_dims(), type_), v}, y);
  return std::move(b_).graph();
}

/// dy · y by row, written to memory, since every block of keys reads it.
TensorIndex AttentionBuilder::row_sums() {
  const TensorIndex y = of_outputs(Operand::y), dy = of_outputs(Operand::dy);
  const Dims dims{o_.batch, o_.heads, o_.seq, o_.width};
  const TensorIndex products = b_.make(Kind::multiply, {dy, y}, dims);
  const TensorIndex sums = b_.make(Kind::sum, {products}, row_dims());
  const TensorIndex to = statistics(Operand::row_sums);
  b_.write(Kind::multiply, {sums, b_.number(1)}, to);
  return to;
}

/// `to` = of_scoresᵀ·of_rows, summed over the heads that a key serves.
void AttentionBuilder::key_gradient(TensorIndex of_scores, TensorIndex of_rows, Operand to) {
  const TensorIndex turned = b_.transposed(of_scores, type_), gradient = of_keys(to);
  if (o_.keys() == o_.heads) return b_.write(Kind::matmul, {turned, of_rows}, gradient);
  const TensorIndex by_head = b_.make(Kind::matmul, {turned, of_rows}, {o_.batch, o_.heads, o_.seq, o_.width}, type_);
  b_.write(Kind::sum, {by_head}, gradient);
}

Graph AttentionBuilder::backward() {
  const TensorIndex sums = row_sums(), dy = b_.of(Operand::dy);
  const TensorIndex q = of_queries(Operand::q), k = b_.transposed_view(of_keys(Operand::k)),
                    v = b_.transposed_view(of_keys(Operand::v));
  const TensorIndex log_sum_exp = statistics(Operand::log_sum_exp);
  const TensorIndex scores = b_.make(Kind::subtract, {scaled(products(q, k)), log_sum_exp}, score_dims());
  const TensorIndex p = b_.make(Kind::exp, {masked(scores)}, score_dims());
  key_gradient(p, dy, Operand::dv);
  const TensorIndex dp = b_.make(Kind::subtract, {products(dy, v), sums}, score_dims());
  const TensorIndex dscores = scaled(b_.make(Kind::multiply, {dp, p}, score_dims()));
  key_gradient(dscores, q, Operand::dk);
  b_.write(Kind::matmul, {dscores, b_.transposed(k, type_)}, of_queries(Operand::dq));
  return std::move(b_).graph();
}

}  // namespace

bool has_graph(const Attention& o, DType type) {
  const bool half = type == DType::bf16 || type == DType::f16;
  const bool window_of_causal = o.causal || o.window == 0;
  return half && window_of_causal && o.alibi == 0 && o.batch > 0 && o.seq > 0 && o.heads > 0 && o.heads % o.keys() == 0;
}

Graph forward_graph(const Attention& o, DType type, Layout layout) {
  return AttentionBuilder(o, type, layout).forward();
}
Graph backward_graph(const Attention& o, DType type, Layout layout) {
  return AttentionBuilder(o, type, layout).backward();
}

}  // namespace foreshard::kernels::cuda::cudnn
