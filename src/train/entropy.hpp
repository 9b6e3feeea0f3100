#pragma once
#include <cstdint>
#include <span>

#include "train/data_shard.hpp"

namespace foreshard::train {

/// What a model must beat, in nats per token. `unigram` = −Σ p(b) ln p(b): guessing by frequency alone. `bigram` =
/// −Σ p(a, b) ln p(b | a): knowing the token before. Both from the counts of the text itself, over all its tokens and
/// all its neighbouring pairs; 0 where there are none.
struct Entropy {
  double unigram = 0, bigram = 0;
  std::int64_t distinct = 0;  ///< different tokens seen
};

Entropy entropy_of(std::span<const std::uint16_t> tokens);
Entropy entropy_of(const DataShard& shard);

}  // namespace foreshard::train
