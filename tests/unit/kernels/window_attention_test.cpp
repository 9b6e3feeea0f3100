// Causal attention whose queries see a window of keys.
#include "attention_operands.hpp"

namespace foreshard::kernels {
namespace {

Attention shape(std::int64_t seq, std::int64_t window) {
  return {.batch = 2, .seq = seq, .heads = 4, .width = 3, .key_heads = 2, .window = window};
}

TEST(WindowAttention, GradientsAreThoseOfDifferences) {
  for (const std::int64_t window : {1, 2, 4, 6}) expect_gradients_of_differences(shape(7, window));
}

Doubles rows_of(const Doubles& x, std::int64_t first, std::int64_t count, std::int64_t cols) {
  Doubles rows(count * cols);
  std::copy_n(x.data.begin() + first * cols, count * cols, rows.data.begin());
  return rows;
}

/// A token's result is that of the last token of a sequence that begins where its window does.
TEST(WindowAttention, IsAttentionOverThePartOfTheSequence) {
  const auto reference = make_reference();
  constexpr std::int64_t seq = 11, window = 4;
  Operands<double> x({.batch = 1, .seq = seq, .heads = 2, .width = 3, .window = window});
  x.forward(*reference);
  for (std::int64_t token = 0; token < seq; ++token) {
    const std::int64_t first = std::max<std::int64_t>(0, token + 1 - window), count = token + 1 - first;
    Operands<double> part({.batch = 1, .seq = count, .heads = 2, .width = 3});
    part.q = rows_of(x.q, first, count, 6), part.k = rows_of(x.k, first, count, 6);
    part.v = rows_of(x.v, first, count, 6);
    part.forward(*reference);
    EXPECT_EQ(rows_of(x.y, token, 1, 6).data, rows_of(part.y, count - 1, 1, 6).data) << token;
    for (std::int64_t head = 0; head < 2; ++head)
      EXPECT_EQ(x.lse[head * seq + token], part.lse[(head + 1) * count - 1]);
  }
}

TEST(WindowAttention, AsLongAsTheSequenceChangesNoBit) {
  for (const auto& backend : {make_cpu(), make_reference()})
    for (const std::int64_t seq : {1, 64, 100, 129})
      for (const std::int64_t window : {seq, seq + 1, 10 * seq}) {
        Operands<float> windowed(shape(seq, window)), all(shape(seq, 0));
        for (Operands<float>* x : {&windowed, &all}) x->forward(*backend), x->backward(*backend);
        EXPECT_EQ(windowed.y.data, all.y.data) << text_of(windowed.o);
        EXPECT_EQ(windowed.lse.data, all.lse.data) << text_of(windowed.o);
        EXPECT_EQ(windowed.dq.data, all.dq.data) << text_of(windowed.o);
        EXPECT_EQ(windowed.dk.data, all.dk.data) << text_of(windowed.o);
        EXPECT_EQ(windowed.dv.data, all.dv.data) << text_of(windowed.o);
      }
}

TEST(WindowAttention, CpuEqualsReference) {
  const auto cpu = make_cpu();
  for (const std::int64_t seq : {2, 17, 64, 65, 150, 200})
    for (const std::int64_t window : {1, 2, 15, 16, 17, 50, 63, 64, 65, 100, 128, 149})
      for (const std::int64_t width : {3, 16})
        for (const float alibi : {0.0F, 8.0F})
          expect_equal_to_reference<float>(
              *cpu,
              {.batch = 2, .seq = seq, .heads = 2, .width = width, .key_heads = 1, .alibi = alibi, .window = window},
              float_error);
}

/// Rows of the first keys that a query does not see hold the largest scores.
TEST(WindowAttention, WhatIsBehindItsEndHasNoEffect) {
  for (const auto& backend : {make_cpu(), make_reference()})
    for (const std::int64_t window : {1, 20, 64, 70}) {
      Operands<float> x({.batch = 1, .seq = 200, .heads = 1, .width = 8, .window = window});
      x.forward(*backend);
      const auto before = x.y.data;
      for (std::int64_t i = 0; i < 100 * 8; ++i) x.k[i] = x.v[i] = 1e3F;
      x.forward(*backend);
      EXPECT_TRUE(std::equal(before.begin() + (99 + window) * 8, before.end(), x.y.data.begin() + (99 + window) * 8));
      EXPECT_NE(before[(98 + window) * 8], x.y[(98 + window) * 8]) << "the last that sees one of them";
    }
}

template <class T>
using WindowAttentionHalves = Halves<T>;
TYPED_TEST_SUITE(WindowAttentionHalves, HalfTypes);

TYPED_TEST(WindowAttentionHalves, EqualReference) {
  using T = TypeParam;
  this->in_both([&](Backend& backend) {
    for (const std::int64_t window : {3, 33, 64})
      for (const std::int64_t seq : {5, 130})
        expect_equal_to_reference<T>(
            backend, {.batch = 1, .seq = seq, .heads = 2, .width = 17, .key_heads = 1, .window = window},
            allowed_of<T>(backend));
  });
}

}  // namespace
}  // namespace foreshard::kernels
