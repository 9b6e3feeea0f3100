#pragma once
#include <cstdint>

namespace foreshard::train {

/// Where `index` goes in a permutation of [0, size) that depends on `key` and `counter`. A pure function in constant
/// memory: a Feistel network on the next even number of bits, walked along its cycle until it falls inside (Black and
/// Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002), Philox as the round function. 0 <= index < size.
std::int64_t permuted(std::int64_t index, std::int64_t size, std::uint64_t key, std::uint64_t counter);

}  // namespace foreshard::train
