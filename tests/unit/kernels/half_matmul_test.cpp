// Products of halves by both routes against the reference in double, and what goes wrong first: tails of k, and sums
// that are rounded on the way.
#include <limits>

#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

template <class T>
struct HalfMatmul : Halves<T> {
  /// Both routes in the cpu, and the reference.
  template <class F>
  void in_every_way(F check) {
    for (const MatmulRoute route : {MatmulRoute::native, MatmulRoute::widened}) {
      SCOPED_TRACE(route == MatmulRoute::native ? "native" : "widened");
      this->cpu->set_matmul_routes({.otherwise = route});
      check(*this->cpu);
    }
    SCOPED_TRACE("reference");
    check(*this->reference);
  }
};
TYPED_TEST_SUITE(HalfMatmul, HalfTypes);

template <class T, class Result>
void expect_product(Backend& backend, Backend& reference, const Matmul& o, bool with_bias) {
  const auto a = Array<T>::random(o.m * o.k, 1), b = Array<T>::random(o.k * o.n, 2),
             bias = Array<T>::random(with_bias ? o.n : 0, 3);
  auto c = Array<Result>::random(o.m * o.n, 4);
  Doubles truth(c);
  backend.matmul(o, a, b, bias, c);
  reference.matmul(o, Doubles(a), Doubles(b), Doubles(bias), truth);
  EXPECT_LE(error(c, truth), allowed<Result>);
}

TYPED_TEST(HalfMatmul, EveryForm) {
  struct Shape {
    std::int64_t m, n, k;
  };
  this->in_every_way([&](Backend& backend) {
    for (const auto [m, n, k] : {Shape{1, 1, 1}, {1, 7, 5}, {3, 2, 17}, {33, 65, 5}, {64, 96, 48}, {70, 35, 300}}) {
      for (int form = 0; form < 16; ++form) {
        SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k << " form " << form);
        const Matmul o{m, n, k, (form & 1) != 0, (form & 2) != 0, (form & 4) != 0};
        expect_product<TypeParam, TypeParam>(backend, *this->reference, o, (form & 8) != 0);
        expect_product<TypeParam, float>(backend, *this->reference, o, (form & 8) != 0);
      }
    }
  });
}

/// Larger than the blocks that either route works on, against the product of floats.
TYPED_TEST(HalfMatmul, LargerThanBlocks) {
  using T = TypeParam;
  for (const MatmulRoute route : {MatmulRoute::native, MatmulRoute::widened}) {
    this->cpu->set_matmul_routes({.otherwise = route});
    for (int form = 0; form < 4; ++form) {
      const Matmul o{530, 520, 2100, (form & 1) != 0, (form & 2) != 0, true};
      const auto a = Array<T>::random(o.m * o.k, 1), b = Array<T>::random(o.k * o.n, 2);
      auto c = Array<T>::random(o.m * o.n, 4);
      Floats wide(c), truth(c);
      this->cpu->matmul(o, a, b, {}, c);
      this->cpu->matmul(o, a, b, {}, wide);
      this->cpu->matmul(o, Floats(a), Floats(b), {}, truth);
      EXPECT_LE(error(wide, truth), float_error) << "form " << form;
      EXPECT_LE(error(c, truth), allowed<T>) << "form " << form;
    }
  }
}

/// 1 + k quarters of its unit in the last place, exact in f32.
TYPED_TEST(HalfMatmul, SumsAreMadeInFloat) {
  using T = TypeParam;
  const auto small = static_cast<float>(rounding_error<T> / 2);
  this->in_every_way([&](Backend& backend) {
    for (const std::int64_t k : {64, 1000, 5000}) {
      const Array<T> a(3 * k, T(1.0F)), b(k * 5, T(small));
      const Floats right(15, 1.0F + small * static_cast<float>(k));
      Floats c(15, 1.0F);
      Array<T> rounded(15, T(1.0F));
      backend.matmul({3, 5, k, false, false, true}, a, b, {}, c);
      backend.matmul({3, 5, k, false, false, true}, a, b, {}, rounded);
      EXPECT_EQ(c.data, right.data) << "k = " << k;
      EXPECT_TRUE(same_bits(rounded, Array<T>(right))) << "k = " << k;
    }
  });
}

/// A NaN in one row of A may show in that row of C only, whatever the tail of k, and nothing behind the operands is
/// read. oneDNN issue 5717: with AMX, tails of k leaked.
TYPED_TEST(HalfMatmul, RowsDoNotLeakThroughTailsOfK) {
  using T = TypeParam;
  constexpr std::int64_t m = 19, n = 33, margin = 64;
  const T nan(std::numeric_limits<float>::quiet_NaN());
  this->in_every_way([&](Backend& backend) {
    for (const std::int64_t k : {1, 2, 3, 15, 16, 17, 31, 32, 33, 47, 63, 65, 97}) {
      for (const bool transpose_b : {false, true}) {
        SCOPED_TRACE(testing::Message() << "k = " << k << " transpose_b " << transpose_b);
        Array<T> a = Array<T>::random(m * k, 1), b = Array<T>::random(k * n, 2), clean(m * n), c(m * n);
        a.data.insert(a.data.end(), margin, nan);
        b.data.insert(b.data.end(), margin, nan);
        const Matmul o{m, n, k, false, transpose_b};
        backend.matmul(o, a, b, {}, clean);
        std::fill_n(a.data.begin() + 4 * k, k, nan);
        backend.matmul(o, a, b, {}, c);
        for (std::int64_t i = 0; i < m * n; ++i) {
          ASSERT_FALSE(std::isnan(static_cast<float>(clean[i]))) << i;
          ASSERT_EQ(std::isnan(static_cast<float>(c[i])), i / n == 4) << i;
          if (i / n != 4) {
            ASSERT_EQ(c[i].bits, clean[i].bits) << i;
          }
        }
      }
    }
  });
}

TYPED_TEST(HalfMatmul, EmptyExtents) {
  using T = TypeParam;
  const auto bias = Array<T>::random(3, 1);
  const Const none{nullptr, dtype_of<T>};
  this->in_every_way([&](Backend& backend) {
    Array<T> c(6, T(5.0F));
    backend.matmul({2, 3, 0, false, true, false}, none, none, bias, c);
    EXPECT_EQ(c[4].bits, bias[1].bits);
    backend.matmul({2, 3, 0}, none, none, {}, c);
    EXPECT_TRUE(same_bits(c, Array<T>(6)));
    backend.matmul({0, 3, 4}, none, Array<T>(12), {}, c);
  });
}

TEST(MatmulRoutes, TheChosenRouteIsSetAndRight) {
  const auto cpu = make_cpu(), reference = make_reference();
  const Matmul o{48, 40, 33, false, true};
  const MatmulRoute route = choose_matmul_route(*cpu, o, DType::bf16);
  expect_product<BFloat16, BFloat16>(*cpu, *reference, o, true);
  Array<BFloat16> chosen(o.m * o.n), again(o.m * o.n);
  const auto a = Array<BFloat16>::random(o.m * o.k, 1), b = Array<BFloat16>::random(o.k * o.n, 2);
  cpu->matmul(o, a, b, {}, chosen);
  cpu->set_matmul_routes({.otherwise = route});
  cpu->matmul(o, a, b, {}, again);
  EXPECT_TRUE(same_bits(chosen, again));
}

TEST(MatmulRoutes, AreFoundByShapeWhetherAccumulatingOrNot) {
  const Matmul shape{4, 5, 6, true, false, false}, other{4, 5, 7, true, false, false};
  Matmul accumulating = shape;
  accumulating.accumulate = true;
  const MatmulRoutes routes{.otherwise = MatmulRoute::widened, .of_shape = {{shape, MatmulRoute::native}}};
  EXPECT_EQ(routes.of(shape), MatmulRoute::native);
  EXPECT_EQ(routes.of(accumulating), MatmulRoute::native);
  EXPECT_EQ(routes.of(other), MatmulRoute::widened);
}

/// However large the matrices, what is widened at a time is not; the native route keeps a transposed block of A.
TEST(MatmulRoutes, ScratchIsBounded) {
  const auto cpu = make_cpu();
  const Matmul head{1024, 50257, 768, false, true}, head_grad{50257, 768, 1024, true};
  cpu->set_matmul_routes({.otherwise = MatmulRoute::widened});
  for (const Matmul& o : {head, head_grad}) {
    for (const DType result : {DType::bf16, DType::f32}) {
      EXPECT_GT(cpu->matmul_scratch_bytes(o, DType::bf16, result), 0);
      EXPECT_LE(cpu->matmul_scratch_bytes(o, DType::bf16, result), 8 << 20);
    }
  }
  cpu->set_matmul_routes({.otherwise = MatmulRoute::native});
  EXPECT_GE(cpu->matmul_scratch_bytes(head_grad, DType::bf16, DType::f32), 512 * 1024 * 2);
  EXPECT_LE(cpu->matmul_scratch_bytes(head_grad, DType::bf16, DType::f32), 16 << 20);
}

}  // namespace
}  // namespace foreshard::kernels
