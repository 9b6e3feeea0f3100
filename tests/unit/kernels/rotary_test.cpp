// Rotary positions: complex numbers are the truth, differences that of the gradient, the reference that of the cpu.
#include <complex>

#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

Rotary rows_of(std::int64_t batch, std::int64_t seq, std::int64_t heads, std::int64_t width, double base = 10000) {
  return {.rows = batch * seq, .heads = heads, .width = width, .seq = seq, .base = base};
}

Rotary backwards(Rotary o) {
  o.back = true;
  return o;
}

std::int64_t size_of(const Rotary& o) { return o.rows * o.heads * o.width; }

TEST(Rotary, TurnsPairsAsComplexNumbers) {
  const Rotary o = rows_of(2, 5, 3, 6, 100);
  const Doubles x = Doubles::random(size_of(o), 1);
  Doubles y(x.size());
  make_reference()->rotary(o, x, y);
  for (std::int64_t row = 0; row < o.rows; ++row) {
    for (std::int64_t head = 0; head < 3; ++head) {
      for (std::int64_t j = 0; j < 3; ++j) {
        const std::int64_t at = (row * 3 + head) * 6 + j;
        const double angle = static_cast<double>(row % 5) / std::pow(100, static_cast<double>(j) / 3);
        const auto turned = std::complex(x[at], x[at + 3]) * std::polar(1.0, angle);
        EXPECT_NEAR(y[at], turned.real(), 1e-12);
        EXPECT_NEAR(y[at + 3], turned.imag(), 1e-12);
      }
    }
  }
}

TEST(Rotary, TurningBackIsTheGradientAndTheInverse) {
  const auto reference = make_reference();
  const Rotary o = rows_of(2, 3, 2, 8);
  Doubles x = Doubles::random(size_of(o), 1), y(x.size()), dx(x.size()), back(x.size());
  const Doubles dy = Doubles::random(x.size(), 2);
  reference->rotary(backwards(o), dy, dx);
  EXPECT_LE(error(dx, differences(x, [&] { return reference->rotary(o, x, y), dot(dy, y); })), difference_error);
  reference->rotary(o, x, y);
  reference->rotary(backwards(o), y, back);
  EXPECT_LE(error(back, x), 1e-14);
}

TEST(Rotary, CpuEqualsReference) {
  const auto cpu = make_cpu(), reference = make_reference();
  for (const Rotary& o : {rows_of(1, 1, 1, 2), rows_of(2, 5, 3, 6), rows_of(3, 17, 2, 34), rows_of(1, 33, 5, 64),
                          rows_of(1, 3000, 1, 32), rows_of(1, 3000, 1, 128, 1e6)}) {
    for (const bool back : {false, true}) {
      SCOPED_TRACE(testing::Message() << "seq " << o.seq << " width " << o.width << " back " << back);
      Rotary turn = o;
      turn.back = back;
      const Floats x = Floats::random(size_of(o), 1);
      Floats y(x.size(), NAN), in_place = x;
      Doubles truth(x.size());
      reference->rotary(turn, Doubles(x), truth);
      cpu->rotary(turn, x, y);
      cpu->rotary(turn, in_place, in_place);
      EXPECT_LE(error(y, truth), 5e-7);
      EXPECT_EQ(in_place.data, y.data);
    }
  }
}

template <class T>
using RotaryHalves = Halves<T>;
TYPED_TEST_SUITE(RotaryHalves, HalfTypes);

TYPED_TEST(RotaryHalves, EqualReference) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const Rotary& o : {rows_of(2, 5, 3, 6), rows_of(3, 17, 2, 34), rows_of(1, 300, 2, 64)}) {
      const auto x = Array<T>::random(size_of(o), 1);
      Array<T> y(x.size()), in_place = x;
      Doubles truth(x.size());
      this->reference->rotary(o, Doubles(x), truth);
      backend.rotary(o, x, y);
      backend.rotary(o, in_place, in_place);
      EXPECT_LE(error(y, truth), allowed<T>);
      EXPECT_TRUE(same_bits(in_place, y));
    }
  });
}

}  // namespace
}  // namespace foreshard::kernels
