// Blocked attention in float against the obvious one in double, at sizes around its blocks of 64.
#include <gtest/gtest.h>

#include "arrays.hpp"

namespace foreshard::kernels {
namespace {

using Floats = Array<float>;
using Doubles = Array<double>;
constexpr double tolerance = 5e-6;

struct Results {
  double y, lse, dqkv;  // errors
};

/// Runs both on qkv; the cpu's backward gets the cpu's own forward.
Results compare(const Attention& o, const Floats& qkv) {
  const auto cpu = make_cpu(), reference = make_reference();
  const std::int64_t n = o.batch * o.seq * o.heads * o.width, rows = o.batch * o.seq * o.heads;
  const Floats dy = Floats::random(n, 77);
  Floats y(n, NAN), lse(rows, NAN), dqkv(3 * n, NAN);
  Doubles y_truth(n), lse_truth(rows), dqkv_truth(3 * n);
  cpu->attention(o, qkv, y, lse);
  cpu->attention_backward(o, dy, qkv, y, lse, dqkv);
  reference->attention(o, Doubles(qkv), y_truth, lse_truth);
  reference->attention_backward(o, Doubles(dy), Doubles(qkv), y_truth, lse_truth, dqkv_truth);
  return {error(y, y_truth), error(lse, lse_truth), error(dqkv, dqkv_truth)};
}

TEST(CpuAttention, AnySize) {
  for (const std::int64_t seq : {1, 2, 5, 8, 15, 16, 17, 33, 63, 64, 65, 100, 129, 200}) {
    for (const std::int64_t width : {1, 3, 8, 16, 17, 32, 64, 80, 128}) {
      SCOPED_TRACE(testing::Message() << "seq " << seq << " width " << width);
      const Attention o{2, seq, 3, width};
      const auto [y, lse, dqkv] = compare(o, Floats::random(3 * o.batch * seq * o.heads * width, 1));
      EXPECT_LE(y, tolerance);
      EXPECT_LE(lse, tolerance);
      EXPECT_LE(dqkv, tolerance);
    }
  }
}

TEST(CpuAttention, ScoresThatGrowAlongTheSequence) {
  const Attention o{1, 300, 1, 8};
  Floats qkv = Floats::random(300 * 24, 1);
  for (std::int64_t i = 0; i < 300; ++i) {
    qkv[i * 24] = 10;
    qkv[i * 24 + 8] = static_cast<float>(i);
  }
  const auto [y, lse, dqkv] = compare(o, qkv);
  EXPECT_LE(y, 1e-4);  // scores near 1000 are themselves only good to 6e-5
  EXPECT_LE(lse, tolerance);
  EXPECT_LE(dqkv, 1e-3);
}

TEST(CpuAttention, ScoresThatFallAlongTheSequence) {
  const Attention o{1, 300, 1, 8};
  Floats qkv = Floats::random(300 * 24, 1);
  for (std::int64_t i = 0; i < 300; ++i) {
    qkv[i * 24] = 10;
    qkv[i * 24 + 8] = static_cast<float>(-i);
  }
  const auto [y, lse, dqkv] = compare(o, qkv);
  EXPECT_LE(y, tolerance);
  EXPECT_LE(lse, tolerance);
  EXPECT_LE(dqkv, 1e-4);
}

TEST(CpuAttention, TokensDoNotSeeTheFuture) {
  const Attention o{1, 130, 2, 16};
  Floats qkv = Floats::random(130 * 96, 1), y(130 * 32), lse(260), y_changed(130 * 32);
  const auto cpu = make_cpu();
  cpu->attention(o, qkv, y, lse);
  for (std::int64_t i = 71 * 96; i < qkv.size(); ++i) qkv[i] = 1e3F;
  cpu->attention(o, qkv, y_changed, lse);
  EXPECT_TRUE(std::equal(y.data.begin(), y.data.begin() + 71 * 32, y_changed.data.begin()));
}

}  // namespace
}  // namespace foreshard::kernels
