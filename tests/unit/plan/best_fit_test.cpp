#include "plan/best_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace foreshard::plan {
namespace {

struct Asked {
  std::int64_t size_bytes = 0;
  std::vector<Interval> alive;
};

/// Intervals of up to `longest` ops; every fifth buffer has two.
std::vector<Asked> random_buffers(unsigned seed, std::uint32_t longest) {
  std::mt19937 random(seed);
  const auto pick = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random); };
  std::vector<Asked> buffers(600);
  for (Asked& buffer : buffers) {
    buffer.size_bytes = 64 * (1 + pick(20));
    for (std::uint32_t i = 0; i < (pick(4) == 0 ? 2U : 1U); ++i) {
      const std::uint32_t birth = 1600 * i + pick(1500);
      buffer.alive.push_back({birth, birth + 1 + pick(longest)});
    }
  }
  return buffers;
}

bool overlap(const Asked& a, const Asked& b) {
  return std::ranges::any_of(a.alive, [&](const Interval& x) {
    return std::ranges::any_of(b.alive, [&](const Interval& y) { return x.end > y.birth && y.end > x.birth; });
  });
}

std::vector<std::int64_t> offsets(const std::vector<Asked>& buffers, bool by_intervals) {
  BestFit fit(128);
  std::vector<std::int64_t> placed;
  for (std::uint32_t i = 0; i < buffers.size(); ++i)
    placed.push_back(fit.place({{i}, buffers[i].size_bytes, buffers[i].alive, by_intervals},
                               [&](BufferId other) { return overlap(buffers[other.value], buffers[i]); }));
  return placed;
}

TEST(BestFit, LookingOnlyNearbyFindsTheSamePlaces) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto buffers = random_buffers(seed, seed % 3 == 0 ? 1500 : 80);
    EXPECT_EQ(offsets(buffers, true), offsets(buffers, false)) << "seed " << seed;
  }
}

TEST(BestFit, ConflictingBuffersShareNoBytes) {
  const auto buffers = random_buffers(7, 100);
  const auto placed = offsets(buffers, true);
  for (std::size_t a = 0; a < buffers.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (overlap(buffers[a], buffers[b])) {
        EXPECT_TRUE(placed[a] + buffers[a].size_bytes <= placed[b] || placed[b] + buffers[b].size_bytes <= placed[a]);
      }
}

TEST(BestFit, FillsTheSmallestGapThatHolds) {
  const std::vector<Asked> buffers{{256, {{0, 9}}}, {256, {{0, 5}}}, {256, {{0, 9}}}, {64, {{6, 9}}}};
  EXPECT_EQ(offsets(buffers, true), (std::vector<std::int64_t>{128, 384, 640, 384})) << "the last where the second was";
}

}  // namespace
}  // namespace foreshard::plan
