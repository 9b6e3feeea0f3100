// Attention whose queries, keys and values lie apart, with fewer heads of keys than of queries and with linear biases.
#include "attention_operands.hpp"
#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

std::vector<Attention> small_shapes() {
  std::vector<Attention> all;
  for (const float alibi : {0.0F, 8.0F})
    for (const std::int64_t keys : {1, 2, 3, 6})
      for (const std::int64_t seq : {1, 2, 5, 9})
        all.push_back({.batch = 2, .seq = seq, .heads = 6, .width = 3, .key_heads = keys, .alibi = alibi});
  return all;
}

TEST(GroupedAttention, GradientsAreThoseOfDifferences) {
  for (const Attention& o : small_shapes()) expect_gradients_of_differences(o);
}

/// One operand of as many heads of keys as of queries: each repeated for its group.
Doubles packed(const Operands<double>& x) {
  const std::int64_t inner = x.query_width;
  Doubles qkv(3 * x.rows * inner);
  for (std::int64_t r = 0; r < x.rows; ++r) {
    for (std::int64_t c = 0; c < inner; ++c) {
      const std::int64_t key = c / x.o.width / x.o.group() * x.o.width + c % x.o.width;
      qkv[3 * r * inner + c] = x.q[r * inner + c];
      qkv[(3 * r + 1) * inner + c] = x.k[r * x.key_width + key];
      qkv[(3 * r + 2) * inner + c] = x.v[r * x.key_width + key];
    }
  }
  return qkv;
}

/// Part `which` of a packed gradient, summed over each group.
Doubles summed(const Operands<double>& x, const Doubles& dqkv, std::int64_t which) {
  Doubles sum(x.rows * x.key_width);
  for (std::int64_t r = 0; r < x.rows; ++r)
    for (std::int64_t c = 0; c < x.query_width; ++c)
      sum[r * x.key_width + c / x.o.width / x.o.group() * x.o.width + c % x.o.width] +=
          dqkv[(3 * r + which) * x.query_width + c];
  return sum;
}

TEST(GroupedAttention, EqualsAttentionWithRepeatedKeys) {
  for (const auto& backend : {make_reference()}) {
    for (const Attention& o : small_shapes()) {
      SCOPED_TRACE(text_of(o));
      Operands<double> x(o);
      x.forward(*backend);
      x.backward(*backend);
      Attention all = o;
      all.key_heads = 0;
      const Doubles qkv = packed(x);
      Doubles y(x.y.size()), lse(x.lse.size()), dqkv(qkv.size());
      backend->attention(all, qkv, y, lse);
      backend->attention_backward(all, x.dy, qkv, y, lse, dqkv);
      EXPECT_EQ(y.data, x.y.data);
      EXPECT_EQ(lse.data, x.lse.data);
      EXPECT_LE(error(x.dk, summed(x, dqkv, 1)), 1e-13);
      EXPECT_LE(error(x.dv, summed(x, dqkv, 2)), 1e-13);
    }
  }
}

TEST(GroupedAttention, CpuEqualsReference) {
  const auto cpu = make_cpu();
  for (const float alibi : {0.0F, 8.0F})
    for (const std::int64_t keys : {1, 2, 3, 6})
      for (const std::int64_t seq : {1, 5, 16, 33, 64, 65, 130})
        for (const std::int64_t width : {2, 16, 34})
          expect_equal_to_reference<float>(
              *cpu, {.batch = 2, .seq = seq, .heads = 6, .width = width, .key_heads = keys, .alibi = alibi},
              float_error);
}

template <class T>
using GroupedAttentionHalves = Halves<T>;
TYPED_TEST_SUITE(GroupedAttentionHalves, HalfTypes);

TYPED_TEST(GroupedAttentionHalves, EqualReference) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const float alibi : {0.0F, 8.0F})
      for (const std::int64_t keys : {1, 2, 4})
        for (const std::int64_t seq : {5, 65})
          expect_equal_to_reference<T>(
              backend, {.batch = 1, .seq = seq, .heads = 4, .width = 17, .key_heads = keys, .alibi = alibi},
              allowed_of<T>(backend));
  });
}

// The paper's slopes of eight heads, and of twelve: those of eight, then every other one of sixteen.
TEST(LinearBiases, HaveThePublishedSlopes) {
  const Attention eight{.heads = 8, .alibi = 8}, twelve{.heads = 12, .alibi = 8};
  for (std::int64_t head = 0; head < 8; ++head) {
    EXPECT_DOUBLE_EQ(eight.slope(head), std::pow(0.5, static_cast<double>(head + 1)));
    EXPECT_DOUBLE_EQ(twelve.slope(head), eight.slope(head));
  }
  for (std::int64_t head = 8; head < 12; ++head)
    EXPECT_DOUBLE_EQ(twelve.slope(head), std::pow(0.5, 0.5 + static_cast<double>(head - 8)));
  EXPECT_EQ((Attention{.heads = 8}.slope(3)), 0);
}

// Where queries are zero, probabilities are those of the biases alone: a geometric series.
TEST(LinearBiases, WeightTokensByTheirDistance) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> x({.batch = 1, .seq = 200, .heads = 2, .width = 1, .alibi = 8});
    x.q = Floats(x.q.size());
    x.v = Floats(x.v.size());
    x.v[2 * 30] = 1;  // of token 30, first head, whose slope is 1/16
    x.forward(*backend);
    for (std::int64_t i = 0; i < 200; ++i) {
      const double r = std::exp(-1.0 / 16), total = (1 - std::pow(r, i + 1)) / (1 - r);
      EXPECT_NEAR(x.y[2 * i], i < 30 ? 0 : std::pow(r, i - 30) / total, 1e-6) << backend->name() << ' ' << i;
    }
  }
}

}  // namespace
}  // namespace foreshard::kernels
