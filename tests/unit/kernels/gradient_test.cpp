// Each backward kernel of the reference in double against central differences of its forward.
#include <gtest/gtest.h>

#include "differences.hpp"

namespace foreshard::kernels {
namespace {

constexpr double tolerance = difference_error;

struct Gradient : testing::Test {
  std::unique_ptr<Backend> reference = make_reference();
};

TEST_F(Gradient, Matmul) {
  for (const auto [m, n, k] : {std::array{1, 1, 1}, {3, 5, 7}, {5, 2, 17}}) {
    Doubles a = Doubles::random(m * k, 1), b = Doubles::random(k * n, 2), bias = Doubles::random(n, 3), c(m * n);
    const Doubles dy = Doubles::random(m * n, 4);
    const auto loss = [&, m = m, n = n, k = k] {
      reference->matmul({m, n, k, false, true}, a, b, bias, c);
      return dot(dy, c);
    };
    Doubles da(m * k), db(k * n), dbias(n);
    reference->matmul({m, k, n}, dy, b, {}, da);
    reference->matmul({n, k, m, true, false}, dy, a, {}, db);
    reference->bias_grad({m, n}, false, dy, dbias);
    EXPECT_LE(error(da, differences(a, loss)), tolerance);
    EXPECT_LE(error(db, differences(b, loss)), tolerance);
    EXPECT_LE(error(dbias, differences(bias, loss)), tolerance);
  }
}

TEST_F(Gradient, LayerNorm) {
  for (const std::int64_t rows : {1, 3, 5, 7}) {
    for (const std::int64_t cols : {1, 2, 3, 5, 17, 33}) {
      SCOPED_TRACE(testing::Message() << rows << " x " << cols);
      const Rows o{rows, cols};
      Doubles x = Doubles::random(rows * cols, 1), residual = Doubles::random(rows * cols, 2);
      Doubles gain = Doubles::random(cols, 3), bias = Doubles::random(cols, 4), sum(rows * cols), y(rows * cols),
              mean(rows), rstd(rows);
      const Doubles dy = Doubles::random(rows * cols, 5), dsum = Doubles::random(rows * cols, 6);
      const auto loss = [&] {
        // A large ε keeps two columns from being a step function.
        reference->layer_norm(o, 0.1F, x, residual, gain, bias, sum, y, mean, rstd);
        return dot(dy, y) + dot(dsum, sum);
      };
      loss();
      Doubles dx(rows * cols), dgain(cols), dbias(cols);
      reference->layer_norm_backward(o, false, dy, sum, gain, mean, rstd, dsum, dx, dgain, dbias);
      const Doubles expected = differences(x, loss);
      EXPECT_LE(error(dx, expected), tolerance);
      EXPECT_LE(error(differences(residual, loss), expected), tolerance);
      EXPECT_LE(error(dgain, differences(gain, loss)), tolerance);
      EXPECT_LE(error(dbias, differences(bias, loss)), tolerance);
    }
  }
}

TEST_F(Gradient, Gelu) {
  Doubles x = Doubles::random(33, 1, 2), y(33);
  const Doubles dy = Doubles::random(33, 2);
  Doubles dx(33);
  reference->gelu_backward(33, dy, x, dx);
  EXPECT_LE(error(dx, differences(x, [&] { return reference->gelu(33, x, y), dot(dy, y); })), tolerance);
}

TEST_F(Gradient, GeluExact) {
  Doubles x = Doubles::random(33, 1, 2), y(33);
  const Doubles dy = Doubles::random(33, 2);
  Doubles dx(33);
  reference->gelu_exact_backward(33, dy, x, dx);
  EXPECT_LE(error(dx, differences(x, [&] { return reference->gelu_exact(33, x, y), dot(dy, y); })), tolerance);
}

TEST_F(Gradient, Dropout) {
  const Dropout o{33, 0.3F, 5, 6};
  Doubles x = Doubles::random(33, 1), y(33), dx(33);
  const Doubles dy = Doubles::random(33, 2);
  reference->dropout(o, dy, dx);
  EXPECT_LE(error(dx, differences(x, [&] { return reference->dropout(o, x, y), dot(dy, y); })), tolerance);
}

TEST_F(Gradient, Attention) {
  for (const std::int64_t seq : {1, 2, 5, 33}) {
    for (const std::int64_t width : {1, 3, 8, 32}) {
      if (seq * width > 300) continue;
      SCOPED_TRACE(testing::Message() << "seq " << seq << " width " << width);
      const Attention o{2, seq, 2, width};
      const std::int64_t tokens = o.batch * seq, inner = o.heads * width;
      Doubles qkv = Doubles::random(3 * tokens * inner, 1), y(tokens * inner), lse(tokens * o.heads),
              dqkv(3 * tokens * inner);
      const Doubles dy = Doubles::random(tokens * inner, 2);
      const auto loss = [&] { return reference->attention(o, qkv, y, lse), dot(dy, y); };
      loss();
      reference->attention_backward(o, dy, qkv, y, lse, dqkv);
      EXPECT_LE(error(dqkv, differences(qkv, loss)), tolerance);
    }
  }
}

TEST_F(Gradient, WideAttention) {
  const Attention o{1, 33, 1, 32};
  Doubles qkv = Doubles::random(3 * 33 * 32, 1), y(33 * 32), lse(33), dqkv(3 * 33 * 32);
  const Doubles dy = Doubles::random(33 * 32, 2);
  const auto loss = [&] { return reference->attention(o, qkv, y, lse), dot(dy, y); };
  loss();
  reference->attention_backward(o, dy, qkv, y, lse, dqkv);
  EXPECT_LE(error(dqkv, differences(qkv, loss)), tolerance);
}

TEST_F(Gradient, Embedding) {
  const Embedding o{10, 3, 7, 5};
  const Tokens tokens = random_tokens(o.rows, o.vocab, 1);
  Doubles table = Doubles::random(21, 2), positions = Doubles::random(15, 3), x(30), d_table(21, 9), d_positions(15, 9);
  const Doubles dx = Doubles::random(30, 4);
  const auto loss = [&] { return reference->embedding(o, tokens, table, positions, x), dot(dx, x); };
  reference->embedding_backward(o, false, dx, tokens, d_table, d_positions);
  EXPECT_LE(error(d_table, differences(table, loss)), tolerance);
  EXPECT_LE(error(d_positions, differences(positions, loss)), tolerance);
}

TEST_F(Gradient, EmbeddingWithoutPositions) {
  const Embedding o{10, 3, 7, 5};
  const Tokens tokens = random_tokens(o.rows, o.vocab, 1);
  Doubles table = Doubles::random(21, 2), x(30), d_table(21, 9);
  const Doubles dx = Doubles::random(30, 4);
  const auto loss = [&] { return reference->embedding(o, tokens, table, {}, x), dot(dx, x); };
  reference->embedding_backward(o, false, dx, tokens, d_table, {});
  EXPECT_LE(error(d_table, differences(table, loss)), tolerance);
}

TEST_F(Gradient, CrossEntropy) {
  for (const std::int64_t rows : {1, 3, 5, 7}) {
    for (const std::int64_t cols : {2, 3, 5, 17, 33}) {
      const Rows o{rows, cols};
      Tokens targets = random_tokens(rows, cols, 3);
      if (rows > 1) targets[1] = -1;
      Doubles logits = Doubles::random(rows * cols, 4, 2), lse(rows), dlogits(rows * cols);
      const auto loss = [&] {
        Doubles sums(2);
        reference->cross_entropy(o, logits, targets, sums, lse);
        EXPECT_EQ(sums[1], static_cast<double>(rows > 1 ? rows - 1 : rows));
        return sums[0];
      };
      loss();
      reference->cross_entropy_backward(o, 1, logits, targets, lse, dlogits);
      EXPECT_LE(error(dlogits, differences(logits, loss)), tolerance);
    }
  }
}

}  // namespace
}  // namespace foreshard::kernels
