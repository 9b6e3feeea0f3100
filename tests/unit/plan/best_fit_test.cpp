#include "plan/best_fit.hpp"

#include <gtest/gtest.h>

#include <random>

namespace foreshard::plan {
namespace {

/// Lives of up to `longest` ops on the compute lane; every eighth is touched by another lane too.
std::vector<Lifetime> random_lives(unsigned seed, std::uint32_t longest) {
  std::mt19937 random(seed);
  const auto pick = [&](std::uint32_t most) { return std::uniform_int_distribution<std::uint32_t>(0, most)(random); };
  std::vector<Lifetime> lives(600);
  for (std::uint32_t i = 0; i < lives.size(); ++i) {
    Lifetime& life = lives[i];
    life = {.buffer = {i}, .size_bytes = 64 * (1 + pick(20))};
    life.birth[0] = pick(1500), life.birth[1] = life.birth[0] / 2;
    life.death[0] = life.birth[0] + 1 + pick(longest);
    life.compute_end = life.death[0];
    if (pick(7) > 0) continue;
    life.compute_only = false, life.death[1] = life.birth[1] + 1 + pick(longest);
    life.compute_end = std::max(life.death[0], 2 * life.death[1]);  // a compute op at p starts at (p - 1, (p - 1) / 2)
  }
  return lives;
}

std::vector<std::int64_t> offsets(const std::vector<Lifetime>& lives, bool simple) {
  BestFit fit(128);
  std::vector<std::int64_t> placed;
  for (const Lifetime& life : lives)
    placed.push_back(fit.place(life, simple, [](const Lifetime& a, const Lifetime& b) { return conflict(a, b); }));
  return placed;
}

TEST(BestFit, LookingOnlyNearbyFindsTheSamePlaces) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const auto lives = random_lives(seed, seed % 3 == 0 ? 1500 : 80);
    EXPECT_EQ(offsets(lives, true), offsets(lives, false)) << "seed " << seed;
  }
}

TEST(BestFit, ConflictingLivesShareNoBytes) {
  const auto lives = random_lives(7, 100);
  const auto placed = offsets(lives, true);
  for (std::size_t a = 0; a < lives.size(); ++a)
    for (std::size_t b = 0; b < a; ++b)
      if (conflict(lives[a], lives[b])) {
        EXPECT_TRUE(placed[a] + lives[a].size_bytes <= placed[b] || placed[b] + lives[b].size_bytes <= placed[a]);
      }
}

TEST(BestFit, FillsTheSmallestGapThatHolds) {
  Lifetime low{.buffer = {0}, .size_bytes = 256}, middle = low, high = low, small = low;
  for (Lifetime* life : {&low, &middle, &high, &small}) life->death[0] = 9;
  middle.death[0] = 5, small.size_bytes = 64, small.birth[0] = 6;
  for (Lifetime* life : {&low, &middle, &high, &small}) life->compute_end = life->death[0];
  BestFit fit(0);
  const auto conflicts = [](const Lifetime& a, const Lifetime& b) { return conflict(a, b); };
  EXPECT_EQ(fit.place(low, true, conflicts), 0);
  EXPECT_EQ(fit.place(middle, true, conflicts), 256);
  EXPECT_EQ(fit.place(high, true, conflicts), 512);
  EXPECT_EQ(fit.place(small, true, conflicts), 256) << "where `middle` was";
}

}  // namespace
}  // namespace foreshard::plan
