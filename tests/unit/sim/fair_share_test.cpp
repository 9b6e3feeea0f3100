#include "sim/fair_share.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace foreshard::sim {
namespace {

TEST(FairShare, IsTheLargestNeedIfAllFit) {
  std::vector<Need> needs{{30, 1}, {20, 2}};
  EXPECT_EQ(fair_level(70, needs), 30);
}

TEST(FairShare, SplitsEquallyAmongEqualNeeds) {
  std::vector<Need> needs{{100, 1}, {100, 3}};
  EXPECT_EQ(fair_level(200, needs), 50);
}

// 10 need less than a third of 100; the others share 90.
TEST(FairShare, WhoNeedsLessLeavesTheRest) {
  std::vector<Need> needs{{80, 1}, {10, 1}, {70, 1}};
  EXPECT_EQ(fair_level(100, needs), 45);
}

TEST(FairShare, UsesAllItCanAndNoMore) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 1000; ++trial) {
    std::vector<Need> needs;
    std::int64_t wanted = 0, used = 0;
    int users = 0;
    for (int i = 0; i < 4; ++i) {
      needs.push_back({static_cast<std::int64_t>(random() % 1000), static_cast<int>(1 + random() % 3)});
      wanted += needs.back().amount * needs.back().count;
      users += needs.back().count;
    }
    const auto capacity = static_cast<std::int64_t>(100 + random() % 5000);
    const std::int64_t level = fair_level(capacity, needs);
    for (const Need& need : needs) used += need.count * std::min(need.amount, level);
    EXPECT_LE(used, capacity);
    EXPECT_GT(used, std::min(wanted, capacity) - users) << "rounded down by less than 1 a user";
  }
}

}  // namespace
}  // namespace foreshard::sim
