#pragma once
#include <cstdint>

namespace foreshard::train {

/// How a data set is cut and dealt.
struct StreamOptions {
  std::int64_t vocab_size = 0, seq_len = 0;
  bool continues = false;        ///< a row's targets are the seq_len tokens behind it: its continuation
  std::int64_t local_batch = 1;  ///< rows of one micro-batch on one rank
  int micro_batches = 1;
  int rank = 0, world_size = 1;
  bool shuffle = false;    ///< rows in an order of their own in each epoch
  std::uint64_t seed = 0;  ///< of the shuffle
};

}  // namespace foreshard::train
