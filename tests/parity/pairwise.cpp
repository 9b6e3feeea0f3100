#include "pairwise.hpp"

#include <random>
#include <set>
#include <tuple>

namespace foreshard::parity {
namespace {

using Pair = std::tuple<std::size_t, std::size_t, std::size_t, std::size_t>;  // dimension, value, dimension, value
using Pairs = std::set<Pair>;

Pairs all_pairs(const std::vector<std::size_t>& sizes) {
  Pairs pairs;
  for (std::size_t a = 0; a < sizes.size(); ++a)
    for (std::size_t b = a + 1; b < sizes.size(); ++b)
      for (std::size_t x = 0; x < sizes[a]; ++x)
        for (std::size_t y = 0; y < sizes[b]; ++y) pairs.emplace(a, x, b, y);
  return pairs;
}

Pairs pairs_of(const Combination& combination) {
  Pairs pairs;
  for (std::size_t a = 0; a < combination.size(); ++a)
    for (std::size_t b = a + 1; b < combination.size(); ++b) pairs.emplace(a, combination[a], b, combination[b]);
  return pairs;
}

std::size_t gain(const Combination& combination, const Pairs& open) {
  std::size_t found = 0;
  for (const Pair& pair : pairs_of(combination)) found += open.contains(pair);
  return found;
}

/// At random, but with one of the open pairs.
Combination candidate(const std::vector<std::size_t>& sizes, const Pairs& open, std::mt19937& random) {
  Combination combination;
  for (const std::size_t size : sizes) combination.push_back(random() % size);
  const auto [a, x, b, y] = *open.begin();
  combination[a] = x;
  combination[b] = y;
  return combination;
}

}  // namespace

std::vector<Combination> pairwise_cover(const std::vector<std::size_t>& sizes) {
  std::vector<Combination> cover;
  std::mt19937 random(1);
  for (Pairs open = all_pairs(sizes); !open.empty();) {
    Combination best = candidate(sizes, open, random);
    for (int i = 0; i < 60; ++i)
      if (Combination other = candidate(sizes, open, random); gain(other, open) > gain(best, open)) best = other;
    for (const Pair& pair : pairs_of(best)) open.erase(pair);
    cover.push_back(best);
  }
  return cover;
}

std::size_t uncovered_pairs(const std::vector<std::size_t>& sizes, const std::vector<Combination>& combinations) {
  Pairs open = all_pairs(sizes);
  for (const Combination& combination : combinations)
    for (const Pair& pair : pairs_of(combination)) open.erase(pair);
  return open.size();
}

}  // namespace foreshard::parity
