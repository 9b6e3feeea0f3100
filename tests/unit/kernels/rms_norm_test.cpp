// RMSNorm: the reference against central differences, the cpu kernels against the reference, in every type.
#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

const Rows shapes[] = {{1, 1}, {3, 2}, {5, 3}, {2, 15}, {3, 16}, {5, 17}, {7, 33}, {97, 192}, {33, 300}, {2, 4099}};

template <class T, class Grad>
struct Norm {
  Rows o;
  Array<T> x, residual, gain, sum, y, dy, dx;
  Array<Computed<T>> rstd;
  Array<Grad> dgain;

  explicit Norm(const Rows& rows)
      : o(rows),
        x(Array<T>::random(rows.rows * rows.cols, 1)),
        residual(Array<T>::random(rows.rows * rows.cols, 2)),
        gain(Array<T>::random(rows.cols, 3)),
        sum(rows.rows * rows.cols),
        y(rows.rows * rows.cols),
        dy(Array<T>::random(rows.rows * rows.cols, 4)),
        dx(rows.rows * rows.cols),
        rstd(rows.rows),
        dgain(Array<Grad>::random(rows.cols, 5)) {}

  void forward(Backend& backend) { backend.rms_norm(o, 0.1F, x, residual, gain, sum, y, rstd); }
  void backward(Backend& backend, bool accumulate) {
    backend.rms_norm_backward(o, accumulate, dy, sum, gain, rstd, residual, dx, dgain);
  }
};

TEST(RmsNorm, GradientsAreThoseOfDifferences) {
  const auto reference = make_reference();
  for (const Rows& o : {Rows{1, 1}, {3, 2}, {5, 3}, {2, 17}, {7, 33}}) {
    SCOPED_TRACE(testing::Message() << o.rows << " x " << o.cols);
    Norm<double, double> n(o);
    const auto loss = [&] { return n.forward(*reference), dot(n.dy, n.y) + dot(n.residual, n.sum); };
    Doubles x = n.x, residual = n.residual;
    const Doubles weights = n.residual;
    const auto of_x = [&] {
      reference->rms_norm(o, 0.1F, x, residual, n.gain, n.sum, n.y, n.rstd);
      return dot(n.dy, n.y) + dot(weights, n.sum);
    };
    loss();
    n.backward(*reference, false);
    const Doubles expected = differences(x, of_x);
    EXPECT_LE(error(n.dx, expected), difference_error);
    EXPECT_LE(error(differences(residual, of_x), expected), difference_error);
    EXPECT_LE(error(n.dgain, differences(n.gain, loss)), difference_error);
  }
}

TEST(RmsNorm, OfARowOfEqualNumbersIsTheirSignsTimesTheGain) {
  const auto cpu = make_cpu();
  Floats x(6, -4.0F), gain = Floats::random(6, 1), y(6), rstd(1);
  cpu->rms_norm({1, 6}, 0, x, {}, gain, {}, y, rstd);
  for (std::int64_t j = 0; j < 6; ++j) EXPECT_FLOAT_EQ(y[j], -gain[j]);
  EXPECT_FLOAT_EQ(rstd[0], 0.25F);
}

template <class T, class Grad>
void expect_equal_to_reference(Backend& backend, double allowed_y, double allowed_grad) {
  const auto reference = make_reference();
  for (const Rows& o : shapes) {
    for (const bool accumulate : {false, true}) {
      SCOPED_TRACE(testing::Message() << o.rows << " x " << o.cols << " accumulate " << accumulate);
      Norm<T, Grad> n(o);
      Doubles sum(n.sum), y(n.y), rstd(o.rows), dx(n.dx), dgain(n.dgain);
      n.forward(backend);
      reference->add(n.x.size(), Doubles(n.x), Doubles(n.residual), sum);
      EXPECT_LE(error(n.sum, sum), allowed_y);
      reference->rms_norm(o, 0.1F, Doubles(n.sum), {}, Doubles(n.gain), {}, y, rstd);  // of the sum as stored
      EXPECT_LE(error(n.y, y), allowed_y);
      EXPECT_LE(error(n.rstd, rstd), float_error);
      n.backward(backend, accumulate);
      reference->rms_norm_backward(o, accumulate, Doubles(n.dy), Doubles(n.sum), Doubles(n.gain), Doubles(n.rstd),
                                   Doubles(n.residual), dx, dgain);
      EXPECT_LE(error(n.dx, dx), allowed_y);
      EXPECT_LE(error(n.dgain, dgain), allowed_grad);
    }
  }
}

TEST(RmsNorm, CpuEqualsReference) { expect_equal_to_reference<float, float>(*make_cpu(), 2e-6, 2e-6); }

TEST(RmsNorm, WritesOverItsInputsAndWithoutAResidual) {
  const auto cpu = make_cpu(), reference = make_reference();
  const Rows o{37, 19};
  Norm<float, float> n(o);
  n.forward(*cpu);
  Doubles dx(n.dx), dgain(n.dgain);
  reference->rms_norm_backward(o, false, Doubles(n.dy), Doubles(n.sum), Doubles(n.gain), Doubles(n.rstd), {}, dx,
                               dgain);
  cpu->rms_norm_backward(o, false, n.dy, n.sum, n.gain, n.rstd, {}, n.dy, n.dgain);
  EXPECT_LE(error(n.dy, dx), 2e-6);
  EXPECT_LE(error(n.dgain, dgain), 2e-6);
}

TEST(RmsNorm, WhatIsAbsentIsNotComputed) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Norm<float, float> whole({37, 19}), part({37, 19}), other({37, 19});
    for (auto* n : {&whole, &part, &other}) n->forward(*backend);
    whole.backward(*backend, false);
    backend->rms_norm_backward(part.o, false, part.dy, part.sum, part.gain, part.rstd, part.residual, part.dx, {});
    backend->rms_norm_backward(other.o, false, other.dy, other.sum, other.gain, other.rstd, other.residual, {},
                               other.dgain);
    EXPECT_EQ(part.dx.data, whole.dx.data);
    EXPECT_EQ(other.dgain.data, whole.dgain.data);
  }
}

template <class T>
using RmsNormHalves = Halves<T>;
TYPED_TEST_SUITE(RmsNormHalves, HalfTypes);

TYPED_TEST(RmsNormHalves, EqualReference) {
  using T = TypeParam;
  this->with_each_gradient([&]<class Grad>(Backend& backend, Grad) {
    expect_equal_to_reference<T, Grad>(backend, rounding_error<T> + 2 * float_error, allowed<Grad>);
  });
}

}  // namespace
}  // namespace foreshard::kernels
