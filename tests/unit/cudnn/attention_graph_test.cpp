// What the graph that cuDNN gets means: attention of the reference in double, forward and backward.
#include "kernels/cuda/cudnn/attention_graph.hpp"

#include <gtest/gtest.h>

#include "arrays.hpp"
#include "unit/cudnn/interpreter.hpp"

namespace foreshard::kernels::cuda::cudnn {
namespace {

using Doubles = Array<double>;

/// Factors of a graph are floats.
constexpr double allowed_error = 1e-6;

/// Operands of a shape, apart or packed, and what the reference makes of them.
struct Case {
  Case(const Attention& shape, Layout layout)
      : o(shape),
        packed(layout == Layout::packed),
        q(Doubles::random(rows * (packed ? 3 : 1) * o.heads * o.width, 1)),
        k(Doubles::random(packed ? 0 : rows * o.keys() * o.width, 2)),
        v(Doubles::random(k.size(), 3)),
        dq(q.size()),
        dk(k.size()),
        dv(k.size()) {
    const auto reference = make_reference();
    reference->attention(o, q, k, v, y, log_sum_exp);
    reference->attention_backward(o, dy, q, k, v, y, log_sum_exp, dq, dk, dv);
  }
  const double* keys(const Doubles& all_q, const Doubles& all_k, std::int64_t place) const {
    return packed ? all_q.data.data() + place * o.heads * o.width : all_k.data.data();
  }

  Attention o;
  bool packed;
  std::int64_t rows = o.batch * o.seq;
  Doubles q, k, v, y = Doubles(rows * o.heads * o.width), dy = Doubles::random(y.size(), 4),
                   log_sum_exp = Doubles(rows * o.heads), dq, dk, dv;
};

void read_inputs(Interpreter& graph, const Case& c) {
  graph.read(Operand::q, c.q.data.data());
  graph.read(Operand::k, c.keys(c.q, c.k, 1));
  graph.read(Operand::v, c.keys(c.q, c.v, 2));
}

void expect_forward(const Case& c, Layout layout) {
  const Graph graph = forward_graph(c.o, DType::bf16, layout);
  Interpreter computed(graph);
  read_inputs(computed, c);
  computed.run();
  Doubles y(c.y.size()), log_sum_exp(c.log_sum_exp.size());
  computed.write(Operand::y, y.data.data());
  computed.write(Operand::log_sum_exp, log_sum_exp.data.data());
  EXPECT_LE(error(y, c.y), allowed_error);
  EXPECT_LE(error(log_sum_exp, c.log_sum_exp), allowed_error);
}

void expect_backward(const Case& c, Layout layout) {
  const Graph graph = backward_graph(c.o, DType::bf16, layout);
  Interpreter computed(graph);
  read_inputs(computed, c);
  computed.read(Operand::y, c.y.data.data());
  computed.read(Operand::dy, c.dy.data.data());
  computed.read(Operand::log_sum_exp, c.log_sum_exp.data.data());
  computed.run();
  Doubles dq(c.dq.size()), dk(c.dk.size()), dv(c.dv.size());
  computed.write(Operand::dq, dq.data.data());
  computed.write(Operand::dk, const_cast<double*>(c.keys(dq, dk, 1)));
  computed.write(Operand::dv, const_cast<double*>(c.keys(dq, dv, 2)));
  EXPECT_LE(error(dq, c.dq), allowed_error);
  EXPECT_LE(error(dk, c.dk), allowed_error);
  EXPECT_LE(error(dv, c.dv), allowed_error);
}

void expect_equal_to_reference(const Attention& o, Layout layout) {
  SCOPED_TRACE(testing::Message() << "seq " << o.seq << " heads " << o.heads << " keys " << o.keys() << " window "
                                  << o.window << (o.causal ? " causal" : "") << (o.scaled ? " scaled" : "")
                                  << (layout == Layout::packed ? " packed" : ""));
  const Case c(o, layout);
  expect_forward(c, layout);
  expect_backward(c, layout);
}

TEST(CudnnAttention, OfRowsApartEqualsReference) {
  for (const std::int64_t seq : {1, 2, 7, 16, 33})
    for (const std::int64_t keys : {0, 1, 2})
      for (const bool causal : {true, false})
        for (const bool scaled : {true, false})
          expect_equal_to_reference(
              {.batch = 2, .seq = seq, .heads = 4, .width = 8, .key_heads = keys, .causal = causal, .scaled = scaled},
              Layout::apart);
}

TEST(CudnnAttention, OfPackedRowsEqualsReference) {
  for (const std::int64_t seq : {1, 7, 16})
    for (const bool causal : {true, false})
      expect_equal_to_reference({.batch = 3, .seq = seq, .heads = 3, .width = 24, .causal = causal}, Layout::packed);
}

TEST(CudnnAttention, WithinWindowsEqualsReference) {
  for (const std::int64_t window : {1, 2, 5, 12, 13, 14, 100})
    for (const Layout layout : {Layout::apart, Layout::packed})
      expect_equal_to_reference({.batch = 2, .seq = 13, .heads = 2, .width = 8, .window = window}, layout);
}

TEST(CudnnAttention, IsOfHalvesWithoutLinearBiases) {
  const Attention o{.batch = 1, .seq = 8, .heads = 2, .width = 8};
  EXPECT_TRUE(has_graph(o, DType::bf16));
  EXPECT_TRUE(has_graph(o, DType::f16));
  EXPECT_FALSE(has_graph(o, DType::f32));
  EXPECT_FALSE(has_graph({.batch = 1, .seq = 8, .heads = 2, .width = 8, .alibi = 8}, DType::bf16));
  EXPECT_FALSE(has_graph({.batch = 1, .seq = 8, .heads = 2, .width = 8, .causal = false, .window = 3}, DType::bf16));
  EXPECT_FALSE(has_graph({.batch = 1, .seq = 0, .heads = 2, .width = 8}, DType::bf16));
}

}  // namespace
}  // namespace foreshard::kernels::cuda::cudnn
