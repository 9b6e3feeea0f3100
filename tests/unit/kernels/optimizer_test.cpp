// Every optimizer: the reference against its definition, the cpu kernels against the reference, shards against wholes.
#include <gtest/gtest.h>

#include "arrays.hpp"
#include "update_of_kind.hpp"

namespace foreshard::kernels {
namespace {

using Floats = Array<float>;
using Doubles = Array<double>;

class Optimizer : public testing::TestWithParam<Kind> {
 protected:
  std::unique_ptr<Backend> cpu = make_cpu(), reference = make_reference();
};

/// One parameter by its textbook formula; decays and scales as `options` says.
class Textbook {
 public:
  explicit Textbook(Kind kind) : kind_(kind) {}

  double next(double p, double g, const Update& o) {
    const double decay = o.weight_decay, lr = o.learning_rate;
    if (kind_ == Kind::lion) {
      const double c = 0.9 * m_ + 0.1 * g;
      m_ = 0.95 * m_ + 0.05 * g;
      return p - lr * ((c > 0 ? 1 : -1) + decay * p);
    }
    if (kind_ != Kind::adamw) g += decay * p;
    if (kind_ == Kind::sgd) return p - lr * g;
    if (kind_ == Kind::momentum || kind_ == Kind::nesterov) {
      m_ = o.momentum * m_ + g;
      return p - lr * (kind_ == Kind::nesterov ? g + o.momentum * m_ : m_);
    }
    m_ = 0.9 * m_ + 0.1 * g;
    v_ = 0.95 * v_ + 0.05 * g * g;
    const double m_hat = m_ / (1 - std::pow(0.9, o.step)), v_hat = v_ / (1 - std::pow(0.95, o.step));
    const double decayed = kind_ == Kind::adamw ? p * (1 - lr * decay) : p;
    return decayed - lr * m_hat / (std::sqrt(v_hat) + 1e-8);
  }

 private:
  Kind kind_;
  double m_ = 0, v_ = 0;
};

TEST_P(Optimizer, ReferenceFollowsItsDefinition) {
  Update o = options(GetParam(), 1);
  Textbook textbook(GetParam());
  Doubles p(1, 1.0), first(1), second(1), g(1);
  double expected = 1;
  for (o.step = 1; o.step <= 6; ++o.step) {
    g[0] = 0.7 - 0.4 * static_cast<double>(o.step);
    step(*reference, GetParam(), o, g, p, first, second);
    expected = textbook.next(expected, 0.5 * g[0], o);
    EXPECT_NEAR(p[0], expected, 1e-14) << "step " << o.step;
  }
}

TEST_P(Optimizer, CpuFollowsTheReference) {
  for (const std::int64_t n : {1, 15, 33, 1000}) {
    Update o = options(GetParam(), n);
    Floats p = Floats::random(n, 1), first(n), second(n);
    Doubles p_truth(p), first_truth(n), second_truth(n);
    for (o.step = 1; o.step <= 3; ++o.step) {
      const Floats g = Floats::random(n, 10 + static_cast<std::uint64_t>(o.step));
      step(*cpu, GetParam(), o, g, p, first, second);
      step(*reference, GetParam(), o, Doubles(g), p_truth, first_truth, second_truth);
    }
    EXPECT_LE(error(p, p_truth), 2e-6);
    EXPECT_LE(error(first, first_truth), 2e-6);
    EXPECT_LE(error(second, second_truth), 2e-6);
  }
}

TEST_P(Optimizer, OfAShardIsThatPartOfTheWhole) {
  Update o = options(GetParam(), 1000);
  const Floats g = Floats::random(1000, 1);
  Floats p = Floats::random(1000, 2), first = Floats::random(1000, 3), second(1000, 0.5F);
  Floats part_p = p, part_first = first, part_second = second;
  step(*cpu, GetParam(), o, g, p, first, second);
  const auto at = [](Floats& a, std::int64_t i) { return Mut{a.data.data() + i, DType::f32}; };
  for (std::int64_t from = 0; from < 1000; from += 125) {
    o.count = 125;
    step(*cpu, GetParam(), o, Const{g.data.data() + from, DType::f32}, at(part_p, from), at(part_first, from),
         at(part_second, from));
  }
  EXPECT_EQ(part_p.data, p.data);
  EXPECT_EQ(part_first.data, first.data);
}

/// A gradient beyond the limit moves as one at the limit does, whichever its sign; one within is not touched.
TEST_P(Optimizer, CutsEachScaledGradientAtTheClipValue) {
  for (Backend* backend : {cpu.get(), reference.get()}) {
    Floats cut(4), within(4);
    cut.data = {8, -8, 0.1F, -0.1F};
    within.data = {0.5F, -0.5F, 0.1F, -0.1F};
    Update o = options(GetParam(), 4), unlimited = o;
    o.clip_value = 0.25;  // half of 0.5: grad_scale is ½
    Floats p = Floats::random(4, 1), first(4), second(4), p_truth = p, first_truth(4), second_truth(4);
    step(*backend, GetParam(), o, cut, p, first, second);
    step(*backend, GetParam(), unlimited, within, p_truth, first_truth, second_truth);
    EXPECT_EQ(p.data, p_truth.data);
    EXPECT_EQ(first.data, first_truth.data);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Optimizer, testing::ValuesIn(kinds),
                         [](const auto& test) { return name_of(test.param); });

TEST(Lion, StandsStillWhereNothingPushes) {
  Update o = options(Kind::lion, 1);
  o.weight_decay = 0;
  Floats p(1, 3), g(1), m(1);
  make_cpu()->lion(o, g, p, m);
  EXPECT_EQ(p[0], 3);
}

}  // namespace
}  // namespace foreshard::kernels
