// SwiGLU: the reference against central differences, the cpu kernels against the reference, in every type.
#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

TEST(Swiglu, GradientsAreThoseOfDifferences) {
  const auto reference = make_reference();
  Doubles gate = Doubles::random(33, 1, 2), up = Doubles::random(33, 2), y(33), dgate(33), dup(33);
  const Doubles dy = Doubles::random(33, 3);
  const auto loss = [&] { return reference->swiglu(33, gate, up, y), dot(dy, y); };
  reference->swiglu_backward(33, dy, gate, up, dgate, dup);
  EXPECT_LE(error(dgate, differences(gate, loss)), difference_error);
  EXPECT_LE(error(dup, differences(up, loss)), difference_error);
}

TEST(Swiglu, IsHalfTheProductAtASmallGate) {
  Doubles gate(1, 1e-9), up(1, 3.0), y(1);
  make_reference()->swiglu(1, gate, up, y);
  EXPECT_NEAR(y[0], 1.5e-9, 1e-17);
}

template <class T>
void expect_equal_to_reference(Backend& backend, double allowed_error) {
  const auto reference = make_reference();
  for (const std::int64_t n : {1, 15, 16, 17, 1000, 40000}) {
    SCOPED_TRACE(testing::Message() << n << " elements");
    const auto gate = Array<T>::random(n, 1, 4), up = Array<T>::random(n, 2), dy = Array<T>::random(n, 3);
    Array<T> y(n), dgate = dy, dup(n);
    Doubles y_truth(n), dgate_truth(n), dup_truth(n);
    backend.swiglu(n, gate, up, y);
    backend.swiglu_backward(n, dgate, gate, up, dgate, dup);
    reference->swiglu(n, Doubles(gate), Doubles(up), y_truth);
    reference->swiglu_backward(n, Doubles(dy), Doubles(gate), Doubles(up), dgate_truth, dup_truth);
    EXPECT_LE(error(y, y_truth), allowed_error);
    EXPECT_LE(error(dgate, dgate_truth), allowed_error);
    EXPECT_LE(error(dup, dup_truth), allowed_error);
  }
}

TEST(Swiglu, CpuEqualsReference) { expect_equal_to_reference<float>(*make_cpu(), 2e-6); }

TEST(Swiglu, OfExtremes) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Floats gate(4), up(4, 1.0F), y(4), dgate(4), dup(4), dy(4, 1.0F);
    gate.data = {100.0F, -100.0F, 1e4F, -1e4F};
    backend->swiglu(4, gate, up, y);
    backend->swiglu_backward(4, dy, gate, up, dgate, dup);
    for (std::int64_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(y[i], std::max(gate[i], 0.0F), 1e-30);
      EXPECT_NEAR(dup[i], std::max(gate[i], 0.0F), 1e-30);
      EXPECT_NEAR(dgate[i], gate[i] > 0 ? 1 : 0, 1e-30);
    }
  }
}

template <class T>
using SwigluHalves = Halves<T>;
TYPED_TEST_SUITE(SwigluHalves, HalfTypes);

TYPED_TEST(SwigluHalves, EqualReference) {
  this->in_both([&](Backend& backend) { expect_equal_to_reference<TypeParam>(backend, allowed<TypeParam>); });
}

}  // namespace
}  // namespace foreshard::kernels
