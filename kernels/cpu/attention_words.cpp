#include "kernels/cpu/attention_words.hpp"

namespace foreshard::kernels::cpu {

void pack_rows(std::int64_t rows, std::int64_t padded_rows, const Head& head, const BFloat16* from, std::int64_t stride,
               BFloat16Pair* to) {
  const std::int64_t words = row_words<BFloat16Pair>(head);
  std::memset(to + rows * words, 0, static_cast<std::size_t>((padded_rows - rows) * words) * sizeof(BFloat16Pair));
  const auto bytes = static_cast<std::size_t>(head.width) * sizeof(BFloat16);
  const std::size_t padding = static_cast<std::size_t>(head.padded_width) * sizeof(BFloat16) - bytes;
  for (std::int64_t i = 0; i < rows; ++i) {
    auto* const row = reinterpret_cast<std::byte*>(to + i * words);
    for (std::int64_t d = 0; d < head.width; d += 2 * lanes) __builtin_prefetch(from + (i + 16) * stride + d);
    std::memcpy(row, from + i * stride, bytes);
    std::memset(row + bytes, 0, padding);
  }
}

void pack_stacks(std::int64_t rows, std::int64_t padded_rows, const Head& head, const BFloat16* from,
                 std::int64_t stride, BFloat16Pair* to) {
  for (std::int64_t i = 0; i < padded_rows; i += 2, to += head.padded_width) {
    const BFloat16 *low = from + i * stride, *high = low + stride;
    for (std::int64_t d = 0; d < head.width; d += 2 * lanes) {
      __builtin_prefetch(low + 16 * stride + d);
      __builtin_prefetch(high + 16 * stride + d);
    }
    const std::int64_t both = i + 1 < rows ? head.width : 0, one = i < rows ? head.width : 0;
    for (std::int64_t d = 0; d < both; ++d) to[d].bits = low[d].bits | std::uint32_t{high[d].bits} << 16;
    for (std::int64_t d = both; d < one; ++d) to[d].bits = low[d].bits;
    std::fill(to + one, to + head.padded_width, BFloat16Pair{0});
  }
}

void scale_scores(const Pair& pair, float scale, float* scores) {
  for (std::int64_t key = 0; key < pair.key_end(); ++key) {
    for (std::int64_t v = pair.first_vector(key); v < pair.query_vectors(); ++v) {
      float* const at = scores + key * block + v * lanes;
      store(at, load(at) * scale);
    }
  }
}

}  // namespace foreshard::kernels::cpu
