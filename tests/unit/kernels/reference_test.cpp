// What the reference must compute, on numbers worked out by hand or by another formula.
#include <gtest/gtest.h>

#include "arrays.hpp"

namespace foreshard::kernels {
namespace {

using Doubles = Array<double>;

TEST(Reference, AttentionOfEqualKeysIsTheRunningMean) {
  const Attention o{1, 4, 1, 2};
  Doubles qkv = Doubles::random(4 * 6, 1), y(8), lse(4);
  for (std::int64_t i = 0; i < 4; ++i) qkv[i * 6 + 2] = qkv[i * 6 + 3] = 0;
  make_reference()->attention(o, qkv, y, lse);
  double sum = 0;
  for (std::int64_t i = 0; i < 4; ++i) {
    sum += qkv[i * 6 + 4];
    EXPECT_NEAR(y[i * 2], sum / static_cast<double>(i + 1), 1e-14);
    EXPECT_NEAR(lse[i], std::log(static_cast<double>(i + 1)), 1e-14);
  }
}

TEST(Reference, RefusesOperandsOfTheWrongType) {
  Doubles x(1);
  Array<float> y(1);
  EXPECT_THROW(make_reference()->gelu(1, x, y), ContractError);
  EXPECT_THROW(make_cpu()->gelu(1, x, y), ContractError);
}

TEST(Reference, CrossEntropyAddsToTheLoss) {
  Doubles logits(4), lse(2), loss(2, 10.0);
  Tokens targets(2, 1);
  make_reference()->cross_entropy({2, 2}, logits, targets, loss, lse);
  EXPECT_NEAR(loss[0], 10 + 2 * std::log(2.0), 1e-14);
  EXPECT_EQ(loss[1], 12);
}

}  // namespace
}  // namespace foreshard::kernels
