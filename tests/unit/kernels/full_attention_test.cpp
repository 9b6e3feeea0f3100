// Attention of every token with all others, with and without scaling, and with a bias by distance, which has a
// gradient.
#include "attention_operands.hpp"

namespace foreshard::kernels {
namespace {

struct Case {
  Attention o;
  bool biased;
};

/// Each combination of what can be on or off.
std::vector<Case> cases(std::initializer_list<std::int64_t> lengths, std::initializer_list<std::int64_t> widths) {
  std::vector<Case> all;
  for (const bool causal : {false, true})
    for (const bool scaled : {false, true})
      for (const bool biased : {false, true})
        for (const std::int64_t seq : lengths)
          for (const std::int64_t width : widths)
            all.push_back(
                {{.batch = 2, .seq = seq, .heads = 3, .width = width, .causal = causal, .scaled = scaled}, biased});
  return all;
}

TEST(FullAttention, GradientsAreThoseOfDifferences) {
  for (const Case& c : cases({1, 2, 5, 9}, {4})) expect_gradients_of_differences(c.o, c.biased);
}

TEST(FullAttention, CpuEqualsReference) {
  const auto cpu = make_cpu();
  for (const Case& c : cases({1, 5, 16, 33, 63, 64, 65, 130}, {2, 16, 34}))
    expect_equal_to_reference<float>(*cpu, c.o, 2 * float_error, c.biased);
}

template <class T>
using FullAttentionHalves = Halves<T>;
TYPED_TEST_SUITE(FullAttentionHalves, HalfTypes);

TYPED_TEST(FullAttentionHalves, EqualReference) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const Case& c : cases({5, 65}, {17})) expect_equal_to_reference<T>(backend, c.o, 2 * allowed<T>, c.biased);
  });
}

// Where queries are zero and there is no bias, every token gets the mean of all values.
TEST(FullAttention, OfZeroQueriesIsTheMean) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> x({.batch = 1, .seq = 70, .heads = 1, .width = 1, .causal = false}, false);
    x.q = Floats(x.q.size());
    x.forward(*backend);
    double sum = 0;
    for (std::int64_t i = 0; i < 70; ++i) sum += static_cast<double>(x.v[i]);
    for (std::int64_t i = 0; i < 70; ++i) EXPECT_NEAR(x.y[i], sum / 70, 1e-6) << backend->name();
  }
}

// A bias that no score outweighs hides the tokens behind: what causal attention does.
TEST(FullAttention, WithAHidingBiasIsCausal) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> full({.batch = 2, .seq = 70, .heads = 2, .width = 5, .causal = false}, true);
    for (std::int64_t head = 0; head < 2; ++head)
      for (std::int64_t d = -69; d <= 69; ++d) full.bias[head * 139 + d + 69] = d > 0 ? -1e4F : 0.0F;
    Operands<float> causal({.batch = 2, .seq = 70, .heads = 2, .width = 5}, false);
    full.forward(*backend), causal.forward(*backend);
    full.backward(*backend), causal.backward(*backend);
    EXPECT_LE(error(full.y, causal.y), float_error) << backend->name();
    EXPECT_LE(error(full.dk, causal.dk), float_error) << backend->name();
  }
}

// Padding beyond the last token has no weight, however large the biases are.
TEST(FullAttention, StandsLargeBiases) {
  for (const auto& backend : {make_cpu(), make_reference()}) {
    Operands<float> x({.batch = 1, .seq = 7, .heads = 1, .width = 3, .causal = false}, true);
    for (std::int64_t i = 0; i < x.bias.size(); ++i) x.bias[i] = 500.0F;
    Operands<float> none({.batch = 1, .seq = 7, .heads = 1, .width = 3, .causal = false}, false);
    x.forward(*backend), none.forward(*backend);
    x.backward(*backend), none.backward(*backend);
    EXPECT_LE(error(x.y, none.y), 1e-4) << backend->name();
    EXPECT_LE(error(x.dq, none.dq), 1e-4) << backend->name();
  }
}

}  // namespace
}  // namespace foreshard::kernels
