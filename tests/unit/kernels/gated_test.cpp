// SwiGLU and its like with GELU: the reference against central differences, the cpu kernels against the reference, in
// every type.
#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

/// One of the two, by its name.
struct Gate {
  const char* name;
  void (Backend::*forward)(std::int64_t, Const, Const, Mut);
  void (Backend::*backward)(std::int64_t, Const, Const, Const, Mut, Mut);
};
const Gate gates[] = {{"swiglu", &Backend::swiglu, &Backend::swiglu_backward},
                      {"geglu", &Backend::geglu, &Backend::geglu_backward}};

TEST(Gated, GradientsAreThoseOfDifferences) {
  const auto reference = make_reference();
  for (const Gate& f : gates) {
    SCOPED_TRACE(f.name);
    Doubles gate = Doubles::random(33, 1, 2), up = Doubles::random(33, 2), y(33), dgate(33), dup(33);
    const Doubles dy = Doubles::random(33, 3);
    const auto loss = [&] { return (*reference.*f.forward)(33, gate, up, y), dot(dy, y); };
    (*reference.*f.backward)(33, dy, gate, up, dgate, dup);
    EXPECT_LE(error(dgate, differences(gate, loss)), difference_error);
    EXPECT_LE(error(dup, differences(up, loss)), difference_error);
  }
}

TEST(Gated, IsHalfTheProductAtASmallGate) {
  for (const Gate& f : gates) {
    Doubles gate(1, 1e-9), up(1, 3.0), y(1);
    (*make_reference().*f.forward)(1, gate, up, y);
    EXPECT_NEAR(y[0], 1.5e-9, 1e-17) << f.name;
  }
}

TEST(Gated, WithGeluIsGeluTimesTheOther) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    const Floats gate = Floats::random(100, 1, 3), up = Floats::random(100, 2);
    Floats gelu(100), y(100);
    backend->gelu(100, gate, gelu);
    backend->geglu(100, gate, up, y);
    for (std::int64_t i = 0; i < 100; ++i) EXPECT_FLOAT_EQ(y[i], gelu[i] * up[i]);
  }
}

template <class T>
void expect_equal_to_reference(Backend& backend, const Gate& f, double allowed_error) {
  const auto reference = make_reference();
  for (const std::int64_t n : {1, 15, 16, 17, 1000, 40000}) {
    SCOPED_TRACE(testing::Message() << f.name << ' ' << n << " elements");
    const auto gate = Array<T>::random(n, 1, 4), up = Array<T>::random(n, 2), dy = Array<T>::random(n, 3);
    Array<T> y(n), dgate = dy, dup(n);
    Doubles y_truth(n), dgate_truth(n), dup_truth(n);
    (backend.*f.forward)(n, gate, up, y);
    (backend.*f.backward)(n, dgate, gate, up, dgate, dup);
    (*reference.*f.forward)(n, Doubles(gate), Doubles(up), y_truth);
    (*reference.*f.backward)(n, Doubles(dy), Doubles(gate), Doubles(up), dgate_truth, dup_truth);
    EXPECT_LE(error(y, y_truth), allowed_error);
    EXPECT_LE(error(dgate, dgate_truth), allowed_error);
    EXPECT_LE(error(dup, dup_truth), allowed_error);
  }
}

TEST(Gated, CpuEqualsReference) {
  for (const Gate& f : gates) expect_equal_to_reference<float>(*make_cpu(), f, 2e-6);
}

TEST(Gated, OfExtremes) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    for (const Gate& f : gates) {
      SCOPED_TRACE(f.name);
      Floats gate(4), up(4, 1.0F), y(4), dgate(4), dup(4), dy(4, 1.0F);
      gate.data = {100.0F, -100.0F, 1e4F, -1e4F};
      ((*backend).*f.forward)(4, gate, up, y);
      ((*backend).*f.backward)(4, dy, gate, up, dgate, dup);
      for (std::int64_t i = 0; i < 4; ++i) {
        EXPECT_NEAR(y[i], std::max(gate[i], 0.0F), 1e-30);
        EXPECT_NEAR(dup[i], std::max(gate[i], 0.0F), 1e-30);
        EXPECT_NEAR(dgate[i], gate[i] > 0 ? 1 : 0, 1e-30);
      }
    }
  }
}

template <class T>
using GatedHalves = Halves<T>;
TYPED_TEST_SUITE(GatedHalves, HalfTypes);

TYPED_TEST(GatedHalves, EqualReference) {
  this->in_both([&](Backend& backend) {
    for (const Gate& f : gates) expect_equal_to_reference<TypeParam>(backend, f, allowed<TypeParam>);
  });
}

}  // namespace
}  // namespace foreshard::kernels
