#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

TYPED_TEST_SUITE(Halves, HalfTypes);

const Rows shapes[] = {{1, 1}, {3, 2}, {7, 5}, {2, 15}, {3, 16}, {5, 17}, {7, 33}, {97, 192}, {33, 300}};

TYPED_TEST(Halves, BiasGrad) {
  using T = TypeParam;
  this->with_each_gradient([&]<class Grad>(Backend& backend, Grad) {
    for (const Rows& o : shapes) {
      for (const bool accumulate : {false, true}) {
        const auto dy = Array<T>::random(o.rows * o.cols, 1);
        auto dbias = Array<Grad>::random(o.cols, 2);
        Doubles truth(dbias);
        backend.bias_grad(o, accumulate, dy, dbias);
        this->reference->bias_grad(o, accumulate, Doubles(dy), truth);
        EXPECT_LE(error(dbias, truth), allowed<Grad>) << o.rows << " x " << o.cols;
      }
    }
  });
}

/// 1 and then many quarters of its unit in the last place: what is accumulated is added before rounding.
TYPED_TEST(Halves, GradientsAreSummedBeforeRounding) {
  using T = TypeParam;
  constexpr std::int64_t rows = 1000;
  const auto small = static_cast<float>(rounding_error<T> / 2);
  const Array<T> dy(rows, T(small));
  const Tokens tokens(rows, 0);
  const double sum = 1 + static_cast<double>(small) * rows;
  this->in_both([&](Backend& backend) {
    Array<T> dbias(1, T(1.0F)), table(1, T(1.0F)), position(1, T(1.0F));
    backend.bias_grad({rows, 1}, true, dy, dbias);
    backend.embedding_backward({rows, 1, 1, 1}, true, dy, tokens, table, position);
    for (const auto* grad : {&dbias, &table, &position}) {
      EXPECT_LE(std::abs(static_cast<double>((*grad)[0]) - sum), sum * rounding_error<T>);
    }
  });
}

TYPED_TEST(Halves, LayerNorm) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const Rows& o : shapes) {
      SCOPED_TRACE(testing::Message() << o.rows << " x " << o.cols);
      const std::int64_t n = o.rows * o.cols;
      const auto x = Array<T>::random(n, 1), residual = Array<T>::random(n, 2), gain = Array<T>::random(o.cols, 3),
                 bias = Array<T>::random(o.cols, 4);
      Array<T> sum(n), y(n);
      Floats mean(o.rows), rstd(o.rows);
      Doubles y_truth(n), sum_truth(n), mean_truth(o.rows), rstd_truth(o.rows);
      backend.layer_norm(o, 1e-2F, x, residual, gain, bias, sum, y, mean, rstd);
      this->reference->add(n, Doubles(x), Doubles(residual), sum_truth);
      EXPECT_LE(error(sum, sum_truth), rounding_error<T>);
      this->reference->layer_norm(o, 1e-2F, Doubles(sum), {}, Doubles(gain), Doubles(bias), {}, y_truth, mean_truth,
                                  rstd_truth);  // of the sum as stored
      EXPECT_LE(error(y, y_truth), rounding_error<T> + 2 * float_error);
      EXPECT_LE(error(mean, mean_truth), float_error);
      EXPECT_LE(error(rstd, rstd_truth), 2 * float_error);
      Array<T> again(n);
      backend.layer_norm(o, 1e-2F, sum, {}, gain, bias, {}, again, mean, rstd);
      EXPECT_TRUE(same_bits(again, y));
    }
  });
}

TYPED_TEST(Halves, LayerNormBackward) {
  using T = TypeParam;
  this->with_each_gradient([&]<class Grad>(Backend& backend, Grad) {
    for (const Rows& o : shapes) {
      for (const bool accumulate : {false, true}) {
        SCOPED_TRACE(testing::Message() << o.rows << " x " << o.cols << " accumulate " << accumulate);
        const std::int64_t n = o.rows * o.cols;
        const auto x = Array<T>::random(n, 1), gain = Array<T>::random(o.cols, 2), residual = Array<T>::random(n, 3);
        const auto mean = Floats::random(o.rows, 4, 0.1), rstd = Floats::random(o.rows, 5);
        auto dy = Array<T>::random(n, 6);
        auto dgain = Array<Grad>::random(o.cols, 7), dbias = Array<Grad>::random(o.cols, 8);
        Doubles dx_truth(n), dgain_truth(dgain), dbias_truth(dbias);
        this->reference->layer_norm_backward(o, accumulate, Doubles(dy), Doubles(x), Doubles(gain), Doubles(mean),
                                             Doubles(rstd), Doubles(residual), dx_truth, dgain_truth, dbias_truth);
        backend.layer_norm_backward(o, accumulate, dy, x, gain, mean, rstd, residual, dy, dgain, dbias);  // dx in dy
        EXPECT_LE(error(dy, dx_truth), allowed<T>);
        EXPECT_LE(error(dgain, dgain_truth), allowed<Grad>);
        EXPECT_LE(error(dbias, dbias_truth), allowed<Grad>);
      }
    }
  });
}

TYPED_TEST(Halves, Gelu) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const std::int64_t n : {1, 15, 16, 17, 1000}) {
      const auto x = Array<T>::random(n, 1, 4), dy = Array<T>::random(n, 2);
      Array<T> y(n), dx = dy;
      Doubles y_truth(n), dx_truth(n);
      backend.gelu(n, x, y);
      backend.gelu_backward(n, dx, x, dx);
      this->reference->gelu(n, Doubles(x), y_truth);
      this->reference->gelu_backward(n, Doubles(dy), Doubles(x), dx_truth);
      EXPECT_LE(error(y, y_truth), allowed<T>);
      EXPECT_LE(error(dx, dx_truth), allowed<T>);
      dx = dy;
      backend.gelu_exact(n, x, y);
      backend.gelu_exact_backward(n, dx, x, dx);
      this->reference->gelu_exact(n, Doubles(x), y_truth);
      this->reference->gelu_exact_backward(n, Doubles(dy), Doubles(x), dx_truth);
      EXPECT_LE(error(y, y_truth), allowed<T>);
      EXPECT_LE(error(dx, dx_truth), allowed<T>);
    }
  });
}

TYPED_TEST(Halves, AddAndDropoutGiveTheBitsOfTheReference) {
  using T = TypeParam;
  for (const std::int64_t n : {1, 15, 37, 1000}) {
    const auto a = Array<T>::random(n, 1), b = Array<T>::random(n, 2);
    Array<T> sum(n), sum_truth(n), dropped(n), dropped_truth(n);
    Doubles truth(n);
    this->cpu->add(n, a, b, sum);
    this->reference->add(n, a, b, sum_truth);
    this->reference->add(n, Doubles(a), Doubles(b), truth);
    EXPECT_TRUE(same_bits(sum, sum_truth));
    EXPECT_LE(error(sum_truth, truth), rounding_error<T>);
    const Dropout o{n, 0.3F, 42, 7, 5};
    this->cpu->dropout(o, a, dropped);
    this->reference->dropout(o, a, dropped_truth);
    this->reference->dropout(o, Doubles(a), truth);
    EXPECT_TRUE(same_bits(dropped, dropped_truth));
    EXPECT_LE(error(dropped, truth), allowed<T>);
  }
}

TYPED_TEST(Halves, Attention) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const Attention& o : {Attention{2, 1, 3, 1}, {2, 5, 3, 8}, {1, 17, 2, 16}, {2, 65, 3, 17}, {1, 130, 2, 32}}) {
      SCOPED_TRACE(testing::Message() << "seq " << o.seq << " width " << o.width);
      const std::int64_t n = o.batch * o.seq * o.heads * o.width, rows = o.batch * o.seq * o.heads;
      const auto qkv = Array<T>::random(3 * n, 1), dy = Array<T>::random(n, 2);
      Array<T> y(n), dqkv(3 * n);
      Floats lse(rows);
      Doubles y_truth(n), lse_truth(rows), dqkv_truth(3 * n);
      backend.attention(o, qkv, y, lse);
      backend.attention_backward(o, dy, qkv, y, lse, dqkv);
      this->reference->attention(o, Doubles(qkv), y_truth, lse_truth);
      this->reference->attention_backward(o, Doubles(dy), Doubles(qkv), Doubles(y), lse_truth, dqkv_truth);
      EXPECT_LE(error(y, y_truth), allowed<T>);
      EXPECT_LE(error(lse, lse_truth), float_error);
      EXPECT_LE(error(dqkv, dqkv_truth), allowed<T>);
    }
  });
}

TYPED_TEST(Halves, Embedding) {
  using T = TypeParam;
  this->with_each_gradient([&]<class Grad>(Backend& backend, Grad) {
    for (const std::int64_t cols : {1, 17, 192, 300}) {
      const Embedding o{26, cols, 11, 13, 15};
      const Tokens tokens = random_tokens(o.rows, o.vocab, 1);
      const auto table = Array<T>::random(o.vocab * cols, 2), positions = Array<T>::random(15 * cols, 3),
                 dx = Array<T>::random(o.rows * cols, 4);
      Array<T> x(o.rows * cols);
      Doubles truth(o.rows * cols);
      backend.embedding(o, tokens, table, positions, x);
      this->reference->embedding(o, tokens, Doubles(table), Doubles(positions), truth);
      EXPECT_LE(error(x, truth), rounding_error<T>);
      for (const bool accumulate : {false, true}) {
        auto d_table = Array<Grad>::random(o.vocab * cols, 5), d_positions = Array<Grad>::random(15 * cols, 6);
        Doubles d_table_truth(d_table), d_positions_truth(d_positions);
        backend.embedding_backward(o, accumulate, dx, tokens, d_table, d_positions);
        this->reference->embedding_backward(o, accumulate, Doubles(dx), tokens, d_table_truth, d_positions_truth);
        EXPECT_LE(error(d_table, d_table_truth), allowed<Grad>);
        EXPECT_LE(error(d_positions, d_positions_truth), allowed<Grad>);
      }
    }
  });
}

TYPED_TEST(Halves, CrossEntropy) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const Rows& o : {Rows{1, 1}, {3, 2}, {5, 17}, {9, 2048}, {3, 2051}, {2, 5000}}) {
      SCOPED_TRACE(testing::Message() << o.rows << " x " << o.cols);
      Tokens targets = random_tokens(o.rows, o.cols, 1);
      if (o.rows > 1) targets[1] = -1;
      auto logits = Array<T>::random(o.rows * o.cols, 2, 5);
      Floats lse(o.rows);
      Doubles loss(2, 1.0), loss_truth(2, 1.0), lse_truth(o.rows), truth(o.rows * o.cols);
      backend.cross_entropy(o, logits, targets, loss, lse);
      this->reference->cross_entropy(o, Doubles(logits), targets, loss_truth, lse_truth);
      this->reference->cross_entropy_backward(o, 1, Doubles(logits), targets, lse_truth, truth);
      backend.cross_entropy_backward(o, 1, logits, targets, lse, logits);
      EXPECT_LE(error(lse, lse_truth), float_error);
      EXPECT_NEAR(loss[0], loss_truth[0], float_error * loss_truth[0]);
      EXPECT_EQ(loss[1], loss_truth[1]);
      EXPECT_LE(error(logits, truth), allowed<T>);
    }
  });
}

TYPED_TEST(Halves, SquaresAndAdamWAreThoseOfTheWidenedNumbers) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const std::int64_t n : {1, 7, 8, 33, 1000}) {
      const auto grad = Array<T>::random(n, 1);
      const Floats widened(grad);
      std::int64_t words[ExactSum::words] = {}, words_truth[ExactSum::words] = {};
      backend.add_powers(2, n, grad, words);
      backend.add_powers(2, n, widened, words_truth);
      EXPECT_TRUE(std::ranges::equal(words, words_truth));
      Update o{n};
      o.learning_rate = 0.1;
      o.grad_scale = 0.5;
      Floats p = Floats::random(n, 2), m = Floats::random(n, 3), v(n, 0.5F), p2 = p, m2 = m, v2 = v;
      backend.adamw(o, grad, p, m, v);
      backend.adamw(o, widened, p2, m2, v2);
      EXPECT_EQ(p.data, p2.data);
      EXPECT_EQ(m.data, m2.data);
      EXPECT_EQ(v.data, v2.data);
    }
  });
}

TYPED_TEST(Halves, NanAndInfinityPassThrough) {
  using T = TypeParam;
  const float infinity = INFINITY;
  this->in_both([&](Backend& backend) {
    for (const std::int64_t n : {4, 20}) {  // part of a vector, and a whole one
      Array<T> x(n, T(1.0F)), y(n), zero(n);
      x[0] = T(NAN);
      x[1] = T(infinity);
      x[2] = T(-infinity);
      backend.add(n, x, zero, y);
      EXPECT_TRUE(std::isnan(static_cast<float>(y[0])));
      EXPECT_EQ(static_cast<float>(y[1]), infinity);
      EXPECT_EQ(static_cast<float>(y[2]), -infinity);
      EXPECT_EQ(static_cast<float>(y[3]), 1.0F);
      backend.gelu(n, x, y);
      EXPECT_TRUE(std::isnan(static_cast<float>(y[0])));
      EXPECT_EQ(static_cast<float>(y[1]), infinity);
      Floats wide(n);
      backend.cast(n, false, x, wide);
      EXPECT_TRUE(std::isnan(wide[0]));
      EXPECT_EQ(wide[1], infinity);
      EXPECT_EQ(wide[2], -infinity);
      std::int64_t words[ExactSum::words] = {};
      backend.add_powers(2, n, x, words);
      EXPECT_TRUE(std::isnan(value_of(words)));
    }
  });
}

TYPED_TEST(Halves, RefusesMixedActivations) {
  using T = TypeParam;
  Array<T> x(1), y(1);
  Floats wide(1);
  Doubles wider(1);
  this->in_both([&](Backend& backend) {
    EXPECT_THROW(backend.gelu(1, wide, y), ContractError);
    EXPECT_THROW(backend.bias_grad({1, 1}, false, x, wider), ContractError);
    EXPECT_THROW(backend.attention({1, 1, 1, 1}, Array<T>(3), y, Array<T>(1)), ContractError);  // statistics are f32
  });
}

}  // namespace
}  // namespace foreshard::kernels
