// The cpu kernels in float against the reference in double, relative to the largest element.
#include <gtest/gtest.h>

#include "arrays.hpp"

namespace foreshard::kernels {
namespace {

using Floats = Array<float>;
using Doubles = Array<double>;
constexpr double tolerance = 2e-6;

struct Cpu : testing::Test {
  std::unique_ptr<Backend> cpu = make_cpu(), reference = make_reference();
};

const Rows shapes[] = {{1, 1},  {3, 2},  {5, 3},  {7, 5},    {2, 15},   {3, 16},
                       {5, 17}, {7, 33}, {1, 65}, {97, 192}, {33, 300}, {8, 4099}};

TEST_F(Cpu, Matmul) {
  struct Shape {
    std::int64_t m, n, k;
  };
  for (const auto [m, n, k] :
       {Shape{1, 1, 1}, {1, 7, 5}, {3, 2, 17}, {33, 65, 5}, {64, 192, 96}, {130, 70, 300}, {7, 2048, 33}}) {
    for (int form = 0; form < 16; ++form) {
      SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " form " << form);
      const Matmul o{m, n, k, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0};
      const Floats a = Floats::random(m * k, 1), b = Floats::random(k * n, 2),
                   bias = Floats::random(form & 8 ? n : 0, 3);
      Floats c = Floats::random(m * n, 4);
      Doubles truth(c);
      cpu->matmul(o, a, b, bias, c);
      reference->matmul(o, Doubles(a), Doubles(b), Doubles(bias), truth);
      EXPECT_LE(error(c, truth), tolerance);
    }
  }
}

TEST_F(Cpu, MatmulOfEmptyExtents) {
  const Floats bias = Floats::random(3, 1);
  Floats c(6, 5.0F);
  cpu->matmul({2, 3, 0}, {}, {}, {}, c);
  EXPECT_EQ(c.data, std::vector<float>(6, 0.0F));
  cpu->matmul({2, 3, 0, false, true, false}, {}, {}, bias, c);
  EXPECT_EQ(c[4], bias[1]);
  cpu->matmul({2, 3, 0, false, false, true}, {}, {}, {}, c);
  EXPECT_EQ(c[4], bias[1]);
  cpu->matmul({0, 3, 4}, {}, Floats(12), {}, {});
  cpu->matmul({2, 0, 4}, Floats(8), {}, {}, {});
}

TEST_F(Cpu, BiasGrad) {
  for (const Rows& o : shapes) {
    for (const bool accumulate : {false, true}) {
      const Floats dy = Floats::random(o.rows * o.cols, 1);
      Floats dbias = Floats::random(o.cols, 2);
      Doubles truth(dbias);
      cpu->bias_grad(o, accumulate, dy, dbias);
      reference->bias_grad(o, accumulate, Doubles(dy), truth);
      EXPECT_LE(error(dbias, truth), tolerance) << o.rows << " x " << o.cols;
    }
  }
}

TEST_F(Cpu, LayerNorm) {
  for (const Rows& o : shapes) {
    for (const bool fused : {false, true}) {
      SCOPED_TRACE(testing::Message() << o.rows << " x " << o.cols << " fused " << fused);
      const std::int64_t n = o.rows * o.cols;
      const Floats x = Floats::random(n, 1), residual = Floats::random(fused ? n : 0, 2),
                   gain = Floats::random(o.cols, 3), bias = Floats::random(o.cols, 4);
      Floats sum(fused ? n : 0), y(n), mean(o.rows), rstd(o.rows);
      Doubles sum_truth(fused ? n : 0), y_truth(n), mean_truth(o.rows), rstd_truth(o.rows);
      cpu->layer_norm(o, 1e-2F, x, residual, gain, bias, sum, y, mean, rstd);
      reference->layer_norm(o, 1e-2F, Doubles(x), Doubles(residual), Doubles(gain), Doubles(bias), sum_truth, y_truth,
                            mean_truth, rstd_truth);
      EXPECT_LE(error(sum, sum_truth), tolerance);
      EXPECT_LE(error(y, y_truth), 5 * tolerance);
      EXPECT_LE(error(mean, mean_truth), tolerance);
      EXPECT_LE(error(rstd, rstd_truth), 5 * tolerance);
    }
  }
}

TEST_F(Cpu, LayerNormWithoutBiasIsThatOfABiasOfZero) {
  const Rows o{5, 37};
  const Floats x = Floats::random(o.rows * o.cols, 1), gain = Floats::random(o.cols, 2), zero(o.cols);
  for (Backend* backend : {cpu.get(), reference.get()}) {
    Floats y(x.size()), with_zero(x.size()), mean(o.rows), rstd(o.rows);
    backend->layer_norm(o, 1e-2F, x, {}, gain, {}, {}, y, mean, rstd);
    backend->layer_norm(o, 1e-2F, x, {}, gain, zero, {}, with_zero, mean, rstd);
    EXPECT_LE(error(y, with_zero), 1e-7);
  }
}

TEST_F(Cpu, LayerNormOfRowsFarFromZero) {
  const Rows o{3, 769};
  Floats x = Floats::random(o.rows * o.cols, 1), y(x.size()), mean(3), rstd(3);
  for (float& v : x.data) v += 1000;
  const Floats gain(o.cols, 1.0F), bias(o.cols);
  Doubles y_truth(x.size()), mean_truth(3), rstd_truth(3);
  cpu->layer_norm(o, 1e-5F, x, {}, gain, bias, {}, y, mean, rstd);
  reference->layer_norm(o, 1e-5F, Doubles(x), {}, Doubles(gain), Doubles(bias), {}, y_truth, mean_truth, rstd_truth);
  EXPECT_LE(error(y, y_truth), 1e-4);  // the mean itself is only known to 6e-5 of a standard deviation
}

TEST_F(Cpu, LayerNormBackward) {
  for (const Rows& o : shapes) {
    for (int form = 0; form < 8; ++form) {
      SCOPED_TRACE(testing::Message() << o.rows << " x " << o.cols << " form " << form);
      const bool accumulate = (form & 1) != 0, in_dy = (form & 4) != 0;
      const std::int64_t n = o.rows * o.cols;
      const Floats x = Floats::random(n, 1), gain = Floats::random(o.cols, 2), mean = Floats::random(o.rows, 3, 0.1),
                   rstd = Floats::random(o.rows, 4);
      Floats dy = Floats::random(n, 5), residual = Floats::random(form & 2 ? n : 0, 6), other(n),
             dgain = Floats::random(o.cols, 7), dbias = Floats::random(o.cols, 8);
      Doubles dx_truth(n), dgain_truth(dgain), dbias_truth(dbias);
      reference->layer_norm_backward(o, accumulate, Doubles(dy), Doubles(x), Doubles(gain), Doubles(mean),
                                     Doubles(rstd), Doubles(residual), dx_truth, dgain_truth, dbias_truth);
      Floats& dx = in_dy ? dy : residual.size() > 0 ? residual : other;
      cpu->layer_norm_backward(o, accumulate, dy, x, gain, mean, rstd, residual, dx, dgain, dbias);
      EXPECT_LE(error(dx, dx_truth), tolerance);
      EXPECT_LE(error(dgain, dgain_truth), tolerance);
      EXPECT_LE(error(dbias, dbias_truth), tolerance);
    }
  }
}

/// What is absent is not computed, and what is present has the bits it has otherwise.
void expect_parts_equal_whole(Backend& kernels) {
  const Rows o{37, 19};
  const std::int64_t n = o.rows * o.cols;
  const Floats x = Floats::random(n, 1), gain = Floats::random(o.cols, 2), mean = Floats::random(o.rows, 3, 0.1),
               rstd = Floats::random(o.rows, 4), dy = Floats::random(n, 5);
  Floats dx(n), dgain(o.cols), dbias(o.cols);
  kernels.layer_norm_backward(o, false, dy, x, gain, mean, rstd, {}, dx, dgain, dbias);
  for (int absent = 1; absent < 8; ++absent) {
    Floats dx_part(n), dgain_part(o.cols), dbias_part(o.cols);
    kernels.layer_norm_backward(o, false, dy, x, gain, mean, rstd, {}, absent & 1 ? Mut{} : Mut(dx_part),
                                absent & 2 ? Mut{} : Mut(dgain_part), absent & 4 ? Mut{} : Mut(dbias_part));
    EXPECT_EQ(dx_part.data, absent & 1 ? Floats(n).data : dx.data) << absent;
    EXPECT_EQ(dgain_part.data, absent & 2 ? Floats(o.cols).data : dgain.data) << absent;
    EXPECT_EQ(dbias_part.data, absent & 4 ? Floats(o.cols).data : dbias.data) << absent;
  }
}

TEST_F(Cpu, LayerNormBackwardOfSomeOperands) {
  expect_parts_equal_whole(*cpu);
  expect_parts_equal_whole(*reference);
}

TEST_F(Cpu, Gelu) {
  for (const bool exact : {false, true}) {
    const auto value = exact ? &Backend::gelu_exact : &Backend::gelu;
    const auto gradient = exact ? &Backend::gelu_exact_backward : &Backend::gelu_backward;
    for (const std::int64_t n : {1, 15, 16, 17, 1000}) {
      const Floats x = Floats::random(n, 1, 4), dy = Floats::random(n, 2);
      Floats y(n), dx = dy;
      Doubles y_truth(n), dx_truth(n);
      (*cpu.*value)(n, x, y);
      (*cpu.*gradient)(n, dx, x, dx);
      (*reference.*value)(n, Doubles(x), y_truth);
      (*reference.*gradient)(n, Doubles(dy), Doubles(x), dx_truth);
      EXPECT_LE(error(y, y_truth), tolerance) << "exact " << exact;
      EXPECT_LE(error(dx, dx_truth), tolerance) << "exact " << exact;
    }
  }
}

// Unlike the tanh form, which is off by up to 5·10⁻⁴, the exact one is x times the normal distribution.
TEST_F(Cpu, GeluExactIsTheNormalDistributionsAtFineSteps) {
  Floats x(8001), y(8001);
  for (std::int64_t i = 0; i < x.size(); ++i) x[i] = 0.002F * static_cast<float>(i - 4000);
  cpu->gelu_exact(x.size(), x, y);
  for (std::int64_t i = 0; i < x.size(); ++i) {
    const auto v = static_cast<double>(x[i]);
    EXPECT_NEAR(y[i], v * 0.5 * std::erfc(-v / std::sqrt(2.0)), 5e-7 * std::max(1.0, std::abs(v))) << v;
  }
}

TEST_F(Cpu, GeluOfExtremes) {
  Floats x(4), dy(4, 1.0F);
  x.data = {100.0F, -100.0F, 1e4F, -1e4F};
  for (const bool exact : {false, true}) {
    Floats y(4), dx(4);
    exact ? cpu->gelu_exact(4, x, y) : cpu->gelu(4, x, y);
    exact ? cpu->gelu_exact_backward(4, dy, x, dx) : cpu->gelu_backward(4, dy, x, dx);
    EXPECT_EQ(y.data, (std::vector<float>{100.0F, 0.0F, 1e4F, 0.0F}));
    EXPECT_EQ(dx.data, (std::vector<float>{1, 0, 1, 0}));
  }
}

TEST_F(Cpu, Add) {
  const Floats a = Floats::random(37, 1), b = Floats::random(37, 2);
  Floats truth(37), in_a = a, in_b = b;
  reference->add(37, a, b, truth);
  cpu->add(37, in_a, b, in_a);
  cpu->add(37, a, in_b, in_b);
  EXPECT_EQ(in_a.data, truth.data);
  EXPECT_EQ(in_b.data, truth.data);
}

TEST_F(Cpu, Embedding) {
  for (const std::int64_t cols : {1, 17, 192}) {
    const Embedding o{26, cols, 11, 13};
    const Tokens tokens = random_tokens(o.rows, o.vocab, 1);
    const Floats table = Floats::random(o.vocab * cols, 2), positions = Floats::random(o.seq * cols, 3),
                 dx = Floats::random(o.rows * cols, 4);
    Floats x(o.rows * cols), x_truth(o.rows * cols);
    cpu->embedding(o, tokens, table, positions, x);
    reference->embedding(o, tokens, table, positions, x_truth);
    EXPECT_EQ(x.data, x_truth.data);
    for (const bool accumulate : {false, true}) {
      Floats d_table = Floats::random(o.vocab * cols, 5), d_positions = Floats::random(o.seq * cols, 6);
      Floats d_table_truth = d_table, d_positions_truth = d_positions;
      cpu->embedding_backward(o, accumulate, dx, tokens, d_table, d_positions);
      reference->embedding_backward(o, accumulate, dx, tokens, d_table_truth, d_positions_truth);
      EXPECT_EQ(d_table.data, d_table_truth.data);
      EXPECT_EQ(d_positions.data, d_positions_truth.data);
    }
  }
}

TEST_F(Cpu, EmbeddingWithoutPositionsCopiesRows) {
  const Embedding o{26, 17, 11, 13};
  const Tokens tokens = random_tokens(o.rows, o.vocab, 1);
  const Floats table = Floats::random(o.vocab * o.cols, 2), none(o.seq * o.cols);
  for (Backend* backend : {cpu.get(), reference.get()}) {
    Floats x(o.rows * o.cols), with_zeros(o.rows * o.cols);
    backend->embedding(o, tokens, table, {}, x);
    backend->embedding(o, tokens, table, none, with_zeros);
    EXPECT_EQ(x.data, with_zeros.data);
  }
}

TEST_F(Cpu, EmbeddingRefusesTokensOutsideTheVocabulary) {
  Tokens tokens(1, 4);
  Floats table(8), x(2);
  EXPECT_THROW(cpu->embedding({1, 2, 4, 1}, tokens, table, table, x), ContractError);
  EXPECT_THROW(reference->embedding({1, 2, 4, 1}, tokens, table, table, x), ContractError);
}

TEST_F(Cpu, CrossEntropy) {
  for (const Rows& o : {Rows{1, 1}, {3, 2}, {5, 17}, {7, 33}, {9, 2048}, {3, 2051}, {2, 5000}, {17, 50257}}) {
    SCOPED_TRACE(testing::Message() << o.rows << " x " << o.cols);
    Tokens targets = random_tokens(o.rows, o.cols, 1);
    if (o.rows > 1) targets[1] = -1;
    Floats logits = Floats::random(o.rows * o.cols, 2, 5), lse(o.rows);
    Doubles loss(2, 1.0), loss_truth(2, 1.0), lse_truth(o.rows), d_truth(o.rows * o.cols);
    cpu->cross_entropy(o, logits, targets, loss, lse);
    reference->cross_entropy(o, Doubles(logits), targets, loss_truth, lse_truth);
    reference->cross_entropy_backward(o, 8, Doubles(logits), targets, lse_truth, d_truth);
    cpu->cross_entropy_backward(o, 8, logits, targets, lse, logits);
    EXPECT_LE(error(lse, lse_truth), tolerance);
    EXPECT_NEAR(loss[0], loss_truth[0], tolerance * loss_truth[0]);
    EXPECT_EQ(loss[1], loss_truth[1]);
    EXPECT_LE(error(logits, d_truth), 2 * tolerance);
  }
}

TEST_F(Cpu, CrossEntropyOfLargeLogitsThatGrowBlockByBlock) {
  const Rows o{1, 10000};
  Floats logits(o.cols), lse(1);
  for (std::int64_t j = 0; j < o.cols; ++j) logits[j] = 0.05F * static_cast<float>(j);
  Tokens targets(1, 0);
  Doubles loss(2), loss_truth(2), lse_truth(1);
  cpu->cross_entropy(o, logits, targets, loss, lse);
  reference->cross_entropy(o, Doubles(logits), targets, loss_truth, lse_truth);
  EXPECT_NEAR(loss[0], loss_truth[0], tolerance * loss_truth[0]);
}

}  // namespace
}  // namespace foreshard::kernels
