#include "train/permutation.hpp"

#include <algorithm>
#include <bit>

#include "base/random.hpp"

namespace foreshard::train {

namespace {

constexpr std::uint64_t rounds = 8;

/// A permutation of [0, 2^(2·half_bits)).
std::uint64_t feistel(std::uint64_t value, int half_bits, std::uint64_t key, std::uint64_t counter) {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits, right = value & mask;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t mixed = philox(key, counter * rounds + round, right)[0];
    left ^= mixed & mask;
    std::swap(left, right);
  }
  return left << half_bits | right;
}

}  // namespace

std::int64_t permuted(std::int64_t index, std::int64_t size, std::uint64_t key, std::uint64_t counter) {
  const auto bound = static_cast<std::uint64_t>(size);
  const int half_bits = std::max(1, (static_cast<int>(std::bit_width(bound - 1)) + 1) / 2);
  auto value = static_cast<std::uint64_t>(index);
  do {
    value = feistel(value, half_bits, key, counter);
  } while (value >= bound);
  return static_cast<std::int64_t>(value);
}

}  // namespace foreshard::train
