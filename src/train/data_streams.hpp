#pragma once
#include "comm/communicator.hpp"
#include "train/train_settings.hpp"

namespace foreshard::train {

/// How one rank of a plan reads its shards: decoders get the token behind each token as its target, encoders with
/// decoders (T5) the tokens behind a whole row as its continuation.
StreamOptions stream_options(const plan::Settings& plan, const TrainSettings& train, const comm::Communicator& rank);

}  // namespace foreshard::train
