// ReLU and scaling, and tables that are read one place before.
#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

template <class T>
void expect_relu_and_scale(Backend& backend) {
  for (const std::int64_t n : {1, 15, 16, 17, 40000}) {
    const auto x = Array<T>::random(n, 1), dy = Array<T>::random(n, 2);
    Array<T> y(n), dx = dy, scaled = x;
    backend.relu(n, x, y);
    backend.relu_backward(n, dx, y, dx);
    backend.scale(n, 0.125, scaled, scaled);
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = static_cast<double>(x[i]);
      ASSERT_EQ(static_cast<double>(y[i]), std::max(0.0, value));
      ASSERT_EQ(static_cast<double>(dx[i]), value > 0 ? static_cast<double>(dy[i]) : 0.0);
      ASSERT_EQ(static_cast<double>(scaled[i]), static_cast<double>(static_cast<T>(static_cast<float>(value / 8))));
    }
  }
}

TEST(Elementwise, ReluAndScale) {
  for (const auto& backend : {make_cpu(), make_reference()}) expect_relu_and_scale<float>(*backend);
}

TEST(Elementwise, PassesOnWhatIsNotANumber) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Floats x(1, NAN), y(1), dy(1, NAN), one(1, 1.0F), dx(1);
    backend->relu(1, x, y);
    EXPECT_TRUE(std::isnan(y[0])) << backend->name();
    backend->relu_backward(1, dy, one, dx);
    EXPECT_TRUE(std::isnan(dx[0])) << backend->name();
  }
}

template <class T>
using ElementwiseHalves = Halves<T>;
TYPED_TEST_SUITE(ElementwiseHalves, HalfTypes);

TYPED_TEST(ElementwiseHalves, ReluAndScale) { this->in_both(expect_relu_and_scale<TypeParam>); }

// Targets 5, ignored, 3 of two sequences are read as 0, 5, 0.
TEST(ShiftedEmbedding, ReadsTheTargetsBefore) {
  const Embedding o{.rows = 6, .cols = 2, .vocab = 9, .seq = 3, .shifted = true};
  Tokens targets(6), read(6);
  targets.data = {5, -1, 3, 7, 8, -1};
  read.data = {0, 5, 0, 0, 7, 8};
  Embedding plain = o;
  plain.shifted = false;
  const Floats table = Floats::random(18, 1), dx = Floats::random(12, 2);
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Floats x(12), expected(12), dtable(18), dexpected(18);
    backend->embedding(o, targets, table, {}, x);
    backend->embedding(plain, read, table, {}, expected);
    EXPECT_EQ(x.data, expected.data) << backend->name();
    backend->embedding_backward(o, false, dx, targets, dtable, {});
    backend->embedding_backward(plain, false, dx, read, dexpected, {});
    EXPECT_EQ(dtable.data, dexpected.data) << backend->name();
  }
}

}  // namespace
}  // namespace foreshard::kernels
