#pragma once
#include <cstdint>

#include "kernels/cpu/simd.hpp"

/// `foreshard::philox` (base/random.hpp) for sixteen consecutive counters at once.
namespace foreshard::kernels::cpu {

typedef std::uint64_t WideVec __attribute__((vector_size(64)));

/// The high and the low halves of the lanes' 64-bit products.
struct Product {
  UintVec high, low;
};
inline Product product(UintVec x, std::uint32_t factor) {
  constexpr std::uint64_t low_half = 0xFFFFFFFF;
  const WideVec even = (WideVec(x) & low_half) * factor, odd = (WideVec(x) >> 32) * factor;
  return {UintVec((even >> 32) | (odd & ~low_half)), UintVec((even & low_half) | (odd << 32))};
}

/// Words of counters {counter_high, first_low + lane}: word w of lane i is at [w][i].
struct PhiloxLanes {
  UintVec word[4];

  PhiloxLanes(std::uint64_t key, std::uint64_t counter_high, std::uint64_t first_low) {
    const auto low = static_cast<std::uint32_t>(first_low);
    word[0] = UintVec{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15} + low;
    word[1] = static_cast<std::uint32_t>(first_low >> 32) + (word[0] < low ? UintVec{} + 1 : UintVec{});
    word[2] = UintVec{} + static_cast<std::uint32_t>(counter_high);
    word[3] = UintVec{} + static_cast<std::uint32_t>(counter_high >> 32);
    for (std::uint64_t round = 0; round < 10; ++round) {
      const std::uint64_t k0 = key + round * 0x9E3779B9, k1 = (key >> 32) + round * 0xBB67AE85;
      const Product a = product(word[0], 0xD2511F53), b = product(word[2], 0xCD9E8D57);
      word[0] = b.high ^ word[1] ^ static_cast<std::uint32_t>(k0);
      word[2] = a.high ^ word[3] ^ static_cast<std::uint32_t>(k1);
      word[1] = b.low;
      word[3] = a.low;
    }
  }

  /// The words in order of counter: words 0…3 of lane 4·quarter, then of the next lane, and so on.
  UintVec in_order(int quarter) const {
    constexpr UintVec low = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23}, high = low + 8;
    constexpr UintVec low_pairs = {0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23}, high_pairs = low_pairs + 8;
    const UintVec half = quarter < 2 ? low : high;
    return __builtin_shuffle(__builtin_shuffle(word[0], word[1], half), __builtin_shuffle(word[2], word[3], half),
                             quarter % 2 == 0 ? low_pairs : high_pairs);
  }
};

}  // namespace foreshard::kernels::cpu
