#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace foreshard::model {

/// How a frozen weight is kept while nobody computes with it: as it is, or packed in four bits a value (NormalFloat)
/// with an fp32 scale for every 64 values; the scales themselves, too, in eight bits with an fp32 scale for every 256
/// of them ("double quantisation"). Source: Dettmers et al. 2023, QLoRA, arXiv 2305.14314, section 3; bitsandbytes and
/// torchtune take the same blocks.
enum class Packing : std::uint8_t { none, nf4, nf4_dq };
inline constexpr std::array<std::string_view, 3> packing_names{"none", "nf4", "nf4-dq"};

inline constexpr std::int64_t packed_word_bytes = 4;

/// Words of 32 bits that hold so many packed values and their scales; the last one may be padded.
constexpr std::int64_t packed_words(Packing packing, std::int64_t values) {
  const auto parts = [](std::int64_t count, std::int64_t of) { return (count + of - 1) / of; };
  if (packing == Packing::none) return 0;
  const std::int64_t scales = parts(values, 64);
  const std::int64_t scale_bytes = packing == Packing::nf4 ? 4 * scales : scales + 4 * parts(scales, 256);
  return parts(parts(values, 2) + scale_bytes, packed_word_bytes);
}

}  // namespace foreshard::model
