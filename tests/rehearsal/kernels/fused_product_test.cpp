// What cuBLASLt makes besides a product, against the reference kernels one by one.
#include "half_arrays.hpp"
#include "rehearsal/kernels/device_fixture.hpp"

namespace foreshard::kernels::cuda {
namespace {

template <class T>
class FusedProduct : public OnStream {
 protected:
  static constexpr std::int64_t m = 10, n = 24, k = 20;
  Array<T> a = Array<T>::random(m * k, 1), b = Array<T>::random(k * n, 2), bias = Array<T>::random(n, 3);
  std::unique_ptr<Backend> reference = make_reference();

  /// In double, of the operands as they are stored.
  Doubles product(const Matmul& o, bool with_bias) {
    Doubles c(m * n);
    reference->matmul(o, Doubles(a), Doubles(b), with_bias ? Const(Doubles(bias)) : Const{}, c);
    return c;
  }
};
using Types = testing::Types<float, BFloat16, Float16>;
TYPED_TEST_SUITE(FusedProduct, Types);

TYPED_TEST(FusedProduct, KeepsWhatItsGeluIsOf) {
  for (const bool with_bias : {false, true}) {
    const Matmul o{this->m, this->n, this->k, false, true};
    const DeviceArray<TypeParam> left(this->a), right(this->b), summand(this->bias),
        x(Array<TypeParam>(this->m * this->n)), y(Array<TypeParam>(this->m * this->n));
    this->kernels->matmul(o, Fused::gelu, left, right, with_bias ? Const(summand) : Const{}, y, x);
    const Doubles sums = this->product(o, with_bias);
    Doubles gelu(this->m * this->n);
    this->reference->gelu(this->m * this->n, sums, gelu);
    Array<TypeParam> seen;
    seen.data = x.values();
    EXPECT_LE(error(seen, sums), allowed<TypeParam>);
    seen.data = y.values();
    EXPECT_LE(error(seen, gelu), allowed<TypeParam>);
  }
}

TYPED_TEST(FusedProduct, IsTakenThroughTheGelu) {
  const Matmul o{this->m, this->n, this->k};
  const Array<TypeParam> before = Array<TypeParam>::random(this->m * this->n, 4, 2);
  const DeviceArray<TypeParam> left(this->a), right(this->b), x(before), dx(Array<TypeParam>(this->m * this->n));
  this->kernels->matmul(o, Fused::gelu_backward, left, right, {}, dx, x);
  Doubles truth(this->m * this->n);
  this->reference->gelu_backward(this->m * this->n, this->product(o, false), Doubles(before), truth);
  Array<TypeParam> seen;
  seen.data = dx.values();
  EXPECT_LE(error(seen, truth), allowed<TypeParam>);
}

/// As gradients of weights are: into f32, or the operands' type.
template <class T, class Grad>
void expect_sums(FusedProduct<T>&, Kernels& kernels, const Array<T>& dy, const Array<T>& x, const Matmul& o) {
  const DeviceArray<T> a(dy), b(x);
  const DeviceArray<Grad> dw(Array<Grad>(o.m * o.n)), dbias(Array<Grad>(o.m));
  kernels.matmul(o, Fused::bias_grad, a, b, {}, dw, dbias);
  Doubles weights(o.m * o.n), sums(o.m);
  const auto reference = make_reference();
  reference->matmul(o, Doubles(dy), Doubles(x), {}, weights);
  reference->bias_grad({.rows = o.k, .cols = o.m}, false, Doubles(dy), sums);
  Array<Grad> seen;
  seen.data = dw.values();
  EXPECT_LE(error(seen, weights), allowed<Grad>);
  seen.data = dbias.values();
  EXPECT_LE(error(seen, sums), allowed<Grad>);
}

TYPED_TEST(FusedProduct, SumsItsLeftOperand) {
  const Matmul o{.m = this->m, .n = this->n, .k = this->k, .transpose_a = true};
  expect_sums<TypeParam, float>(*this, *this->kernels, this->a, this->b, o);
  expect_sums<TypeParam, TypeParam>(*this, *this->kernels, this->a, this->b, o);
}

using FusedProducts = OnStream;

TEST_F(FusedProducts, HaveAlgorithmsOfTheirOwn) {
  const Matmul o{16, 8, 32};
  const MatmulTypes plain{DType::bf16, DType::bf16}, gelu{DType::bf16, DType::bf16, false, Fused::gelu};
  EXPECT_FALSE(kernels->candidates(o, plain).front() == kernels->candidates(o, gelu).front());
}

TEST_F(FusedProducts, AreRefusedWhereTheLibraryHasNoSuchLayout) {
  EXPECT_THROW(kernels->candidates({16, 12, 32}, {DType::bf16, DType::bf16, false, Fused::gelu}), LibraryError);
}

}  // namespace
}  // namespace foreshard::kernels::cuda
