#pragma once
#include <cstddef>
#include <vector>

namespace foreshard::parity {

/// One choice for each dimension, by index.
using Combination = std::vector<std::size_t>;

/// Combinations of `sizes.size()` dimensions, dimension d with `sizes[d]` values, such that every pair of values of
/// every two dimensions stands in one of them. Greedy: each is the best of many random ones; the same at every call.
std::vector<Combination> pairwise_cover(const std::vector<std::size_t>& sizes);

/// Pairs of values that no combination has.
std::size_t uncovered_pairs(const std::vector<std::size_t>& sizes, const std::vector<Combination>& combinations);

}  // namespace foreshard::parity
