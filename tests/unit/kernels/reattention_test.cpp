// Attention whose heads are mixed and normalised before they meet the values.
#include <array>

#include "differences.hpp"
#include "half_arrays.hpp"

namespace foreshard::kernels {
namespace {

template <class T, class Grad = T>
struct Operands {
  Reattention o;
  std::int64_t count;
  Array<T> q, k, v, mixing, gain, bias, y, dy, dq, dk, dv;
  Array<Grad> dmixing, dgain, dbias;
  Array<Computed<T>> lse;

  explicit Operands(const Reattention& shape)
      : o(shape),
        count(o.batch * o.seq * o.heads * o.width),
        q(Array<T>::random(count, 1)),
        k(Array<T>::random(count, 2)),
        v(Array<T>::random(count, 3)),
        mixing(Array<T>::random(o.heads * o.heads, 4)),
        gain(Array<T>::random(o.heads, 5)),
        bias(Array<T>::random(o.heads, 6)),
        y(count),
        dy(Array<T>::random(count, 7)),
        dq(count),
        dk(count),
        dv(count),
        dmixing(Array<Grad>::random(o.heads * o.heads, 8)),
        dgain(Array<Grad>::random(o.heads, 9)),
        dbias(Array<Grad>::random(o.heads, 10)),
        lse(o.batch * o.heads * o.seq) {}

  template <class Other>
  void take(const Other& x) {
    q = Array<T>(x.q), k = Array<T>(x.k), v = Array<T>(x.v), mixing = Array<T>(x.mixing), gain = Array<T>(x.gain);
    bias = Array<T>(x.bias), dy = Array<T>(x.dy);
    dmixing = Array<Grad>(x.dmixing), dgain = Array<Grad>(x.dgain), dbias = Array<Grad>(x.dbias);
  }

  void forward(Backend& backend) { backend.reattention(o, q, k, v, mixing, gain, bias, y, lse); }
  void backward(Backend& backend, bool accumulate = false) {
    backend.reattention_backward(o, accumulate, dy, q, k, v, mixing, gain, bias, lse, dq, dk, dv, dmixing, dgain,
                                 dbias);
  }
  auto gradients() const { return std::array{&dq, &dk, &dv}; }
  auto of_parameters() const { return std::array{&dmixing, &dgain, &dbias}; }
};

std::string text_of(const Reattention& o) {
  return (testing::Message() << "batch " << o.batch << " seq " << o.seq << " heads " << o.heads << " width " << o.width)
      .GetString();
}

std::vector<Reattention> shapes(std::initializer_list<std::int64_t> lengths, std::initializer_list<std::int64_t> heads,
                                std::initializer_list<std::int64_t> widths) {
  std::vector<Reattention> all;
  for (const std::int64_t seq : lengths)
    for (const std::int64_t h : heads)
      for (const std::int64_t width : widths) all.push_back({.batch = 2, .seq = seq, .heads = h, .width = width});
  return all;
}

TEST(Reattention, GradientsAreThoseOfDifferences) {
  const auto reference = make_reference();
  for (const Reattention& o : shapes({2, 5}, {2, 3}, {1, 4})) {
    SCOPED_TRACE(text_of(o));
    Operands<double> x(o);
    const auto loss = [&] { return x.forward(*reference), dot(x.dy, x.y); };
    loss();
    x.backward(*reference);
    EXPECT_LE(error(x.dq, differences(x.q, loss)), difference_error);
    EXPECT_LE(error(x.dk, differences(x.k, loss)), difference_error);
    EXPECT_LE(error(x.dv, differences(x.v, loss)), difference_error);
    EXPECT_LE(error(x.dmixing, differences(x.mixing, loss)), difference_error);
    EXPECT_LE(error(x.dgain, differences(x.gain, loss)), difference_error);
    EXPECT_LE(error(x.dbias, differences(x.bias, loss)), difference_error);
  }
}

// Two heads that are not mixed: one is over the mean where it has the larger probability, the other as much below.
TEST(Reattention, OfTwoHeadsIsTheSignOfTheirDifference) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> x({.batch = 1, .seq = 2, .heads = 2, .width = 1, .epsilon = 0});
    x.mixing.data = {1, 0, 0, 1}, x.gain.data = {1, 1}, x.bias.data = {0, 0};
    x.q.data = {1, 1, 1, 1}, x.k.data = {2, 0, 0, 0}, x.v.data = {3, 5, 1, 2};
    x.forward(*backend);
    for (std::int64_t token = 0; token < 2; ++token) {
      EXPECT_NEAR(x.y[2 * token], 3 - 1, 1e-5) << backend->name();
      EXPECT_NEAR(x.y[2 * token + 1], -5 + 2, 1e-5) << backend->name();
    }
    EXPECT_NEAR(x.lse[0], std::log(std::exp(2.0) + 1), 1e-6) << backend->name();
    EXPECT_NEAR(x.lse[2], std::log(2.0), 1e-6) << "of the second head, " << backend->name();
  }
}

// Without a gain every weight is the head's bias, whatever is asked for: y is a multiple of the sum of all values.
TEST(Reattention, WithoutAGainSumsAllValues) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> x({.batch = 2, .seq = 37, .heads = 3, .width = 5});
    x.gain = Floats(3);
    x.forward(*backend), x.backward(*backend);
    for (std::int64_t h = 0; h < 3; ++h) {
      double sum = 0;
      for (std::int64_t j = 0; j < 37; ++j) sum += static_cast<double>(x.v[j * 15 + h * 5]);
      for (std::int64_t i = 0; i < 37; ++i)
        EXPECT_NEAR(x.y[i * 15 + h * 5], sum * static_cast<double>(x.bias[h]), 1e-4) << backend->name();
    }
    EXPECT_EQ(x.dq.data, Floats(x.count).data) << backend->name();
    EXPECT_EQ(x.dmixing.data, Floats(9).data) << backend->name();
  }
}

TEST(Reattention, LeavesOutWhatIsAbsent) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> all({.batch = 3, .seq = 11, .heads = 4, .width = 6});
    all.forward(*backend);
    Operands<float> some(all), other(all);
    all.backward(*backend);
    const auto absent = [](Operands<float>& x, Backend& b, Mut dq, Mut dk, Mut dv, Mut dmixing, Mut dgain, Mut dbias) {
      b.reattention_backward(x.o, false, x.dy, x.q, x.k, x.v, x.mixing, x.gain, x.bias, x.lse, dq, dk, dv, dmixing,
                             dgain, dbias);
    };
    absent(some, *backend, some.dq, {}, some.dv, {}, some.dgain, {});
    absent(other, *backend, {}, other.dk, {}, other.dmixing, {}, other.dbias);
    EXPECT_EQ(some.dq.data, all.dq.data) << backend->name();
    EXPECT_EQ(some.dv.data, all.dv.data) << backend->name();
    EXPECT_EQ(some.dgain.data, all.dgain.data) << backend->name();
    EXPECT_EQ(other.dk.data, all.dk.data) << backend->name();
    EXPECT_EQ(other.dmixing.data, all.dmixing.data) << backend->name();
    EXPECT_EQ(other.dbias.data, all.dbias.data) << backend->name();
  }
}

template <class T, class Grad>
void expect_equal_to_reference(Backend& backend, const Reattention& o, double allowed_error, double allowed_grad) {
  const auto reference = make_reference();
  for (const bool accumulate : {false, true}) {
    SCOPED_TRACE(text_of(o));
    Operands<T, Grad> x(o);
    Operands<double> truth(o);
    truth.take(x);
    x.forward(backend), truth.forward(*reference);
    EXPECT_LE(error(x.lse, truth.lse), float_error);
    EXPECT_LE(error(x.y, truth.y), allowed_error);
    x.backward(backend, accumulate), truth.backward(*reference, accumulate);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_LE(error(*x.gradients()[i], *truth.gradients()[i]), allowed_error) << "input " << i;
      EXPECT_LE(error(*x.of_parameters()[i], *truth.of_parameters()[i]), allowed_grad) << "parameter " << i;
    }
  }
}

// Where all heads of a key are alike the norm makes much of little: rounding counts by as much as 1/√ε. Of two heads it
// leaves a sign, whose gradient is what cancellation leaves; those are compared in double only, above.
constexpr double amplified = 20;

TEST(Reattention, CpuEqualsReference) {
  const auto cpu = make_cpu();
  for (const Reattention& o : shapes({2, 7, 8, 16, 33, 65}, {3, 8, 9}, {1, 16, 34}))
    expect_equal_to_reference<float, float>(*cpu, o, amplified * float_error, amplified * float_error);
}

template <class T>
using ReattentionHalves = Halves<T>;
TYPED_TEST_SUITE(ReattentionHalves, HalfTypes);

TYPED_TEST(ReattentionHalves, EqualReference) {
  this->with_each_gradient([&]<class Grad>(Backend& backend, Grad) {
    for (const Reattention& o : shapes({5, 17}, {3}, {4, 17}))
      expect_equal_to_reference<TypeParam, Grad>(backend, o, rounding_error<TypeParam> + amplified * float_error,
                                                 rounding_error<Grad> + amplified * float_error);
  });
}

}  // namespace
}  // namespace foreshard::kernels
