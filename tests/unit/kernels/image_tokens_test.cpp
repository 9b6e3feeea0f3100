// From patches to tokens and from tokens to the class token, each with its gradient.
#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

constexpr ImageTokens shapes[] = {{1, 1, 5}, {1, 4, 3}, {3, 2, 7}, {4, 10, 33}, {33, 5, 300}};

template <class T, class Grad = T>
struct Operands {
  ImageTokens o;
  std::int64_t all, rest;
  Array<T> patches, class_token, positions, x, dx, dpatches, first, dfirst, dall;
  Array<Grad> dclass_token, dpositions;

  explicit Operands(const ImageTokens& shape)
      : o(shape),
        all(o.images * o.seq * o.cols),
        rest(o.images * (o.seq - 1) * o.cols),
        patches(Array<T>::random(rest, 1)),
        class_token(Array<T>::random(o.cols, 2)),
        positions(Array<T>::random(o.seq * o.cols, 3)),
        x(all),
        dx(Array<T>::random(all, 4)),
        dpatches(rest),
        first(o.images * o.cols),
        dfirst(Array<T>::random(o.images * o.cols, 5)),
        dall(all, static_cast<T>(7.0F)),
        dclass_token(Array<Grad>::random(o.cols, 6)),
        dpositions(Array<Grad>::random(o.seq * o.cols, 7)) {}

  void forward(Backend& backend) {
    backend.image_tokens(o, patches, class_token, positions, x);
    backend.first_token(o, x, first);
  }
  void backward(Backend& backend, bool accumulate) {
    backend.image_tokens_backward(o, accumulate, dx, dpatches, dclass_token, dpositions);
    backend.first_token_backward(o, dfirst, dall);
  }
};

TEST(ImageTokens, GradientsAreThoseOfDifferences) {
  const auto reference = make_reference();
  for (const ImageTokens& o : std::span(shapes).first(3)) {
    Operands<double> x(o);
    const auto loss = [&] { return x.forward(*reference), dot(x.dx, x.x); };
    x.backward(*reference, false);
    EXPECT_LE(error(x.dpatches, differences(x.patches, loss)), difference_error);
    EXPECT_LE(error(x.dclass_token, differences(x.class_token, loss)), difference_error);
    EXPECT_LE(error(x.dpositions, differences(x.positions, loss)), difference_error);
    Doubles all = Doubles::random(x.all, 9);
    const auto first = [&] { return reference->first_token(o, all, x.first), dot(x.dfirst, x.first); };
    EXPECT_LE(error(x.dall, differences(all, first)), difference_error);
  }
}

TEST(ImageTokens, PutTheClassTokenFirst) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> x({.images = 2, .seq = 3, .cols = 2});
    x.forward(*backend);
    EXPECT_FLOAT_EQ(x.x[6], x.class_token[0] + x.positions[0]);
    EXPECT_FLOAT_EQ(x.x[6 + 2 + 1], x.patches[4 + 1] + x.positions[2 + 1]);
    EXPECT_EQ(x.first[2], x.x[6]);
  }
}

TEST(ImageTokens, LeaveOutWhatIsAbsent) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> some({.images = 2, .seq = 3, .cols = 2}), all(some);
    all.backward(*backend, false);
    backend->image_tokens_backward(some.o, false, some.dx, {}, {}, some.dpositions);
    EXPECT_EQ(some.dpositions.data, all.dpositions.data);
  }
}

template <class T, class Grad>
void expect_equal_to_reference(Backend& backend) {
  const auto reference = make_reference();
  for (const ImageTokens& o : shapes)
    for (const bool accumulate : {false, true}) {
      Operands<T, Grad> x(o);
      Operands<double> truth(o);
      truth.patches = Doubles(x.patches), truth.class_token = Doubles(x.class_token);
      truth.positions = Doubles(x.positions), truth.dx = Doubles(x.dx), truth.dfirst = Doubles(x.dfirst);
      truth.dclass_token = Doubles(x.dclass_token), truth.dpositions = Doubles(x.dpositions);
      x.forward(backend), truth.forward(*reference);
      x.backward(backend, accumulate), truth.backward(*reference, accumulate);
      EXPECT_LE(error(x.x, truth.x), allowed<T>);
      EXPECT_LE(error(x.first, truth.first), allowed<T>);
      EXPECT_EQ(error(x.dpatches, truth.dpatches), 0);
      EXPECT_EQ(error(x.dall, truth.dall), 0);
      EXPECT_LE(error(x.dclass_token, truth.dclass_token), allowed<Grad>);
      EXPECT_LE(error(x.dpositions, truth.dpositions), allowed<Grad>);
    }
}

TEST(ImageTokens, CpuEqualsReference) { expect_equal_to_reference<float, float>(*make_cpu()); }

template <class T>
using ImageTokensHalves = Halves<T>;
TYPED_TEST_SUITE(ImageTokensHalves, HalfTypes);

TYPED_TEST(ImageTokensHalves, EqualReference) {
  this->with_each_gradient(
      [&]<class Grad>(Backend& backend, Grad) { expect_equal_to_reference<TypeParam, Grad>(backend); });
}

}  // namespace
}  // namespace foreshard::kernels
