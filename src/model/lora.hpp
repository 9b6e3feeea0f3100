#pragma once
#include <array>
#include <cstdint>
#include <string_view>

#include "model/packing.hpp"

namespace foreshard::model {

/// The projections of a block of Llama's family.
enum class Projection : std::uint8_t { q, k, v, o, gate, up, down };
inline constexpr std::array<std::string_view, 7> projection_names{"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                                                  "gate_proj", "up_proj", "down_proj"};

/// Low-rank adaptation (Hu et al. 2021, arXiv 2106.09685): beside a projection [out, in] stand matrices A [rank, in]
/// and B [out, rank] whose product is added to it, scaled by 1. Only these are trained.
struct Lora {
  std::int64_t rank = 0;         ///< 0: none, all is trained
  std::uint8_t targets = 0b101;  ///< a bit for each projection; peft's default for Llama is q and v
  /// How the frozen weights of all projections are kept, those of no target too: not the table, norms, biases and the
  /// head, as QLoRA (arXiv 2305.14314), bitsandbytes in transformers and torchtune's quantize_base have it.
  Packing base = Packing::none;
  bool adapts(Projection projection) const {
    return rank > 0 && (targets >> static_cast<unsigned>(projection) & 1U) != 0;
  }
};

}  // namespace foreshard::model
