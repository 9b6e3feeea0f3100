#pragma once
#include <memory>

#include "comm/communicator.hpp"
#include "train/data_stream.hpp"
#include "train/train_settings.hpp"

namespace foreshard::train {

/// How one rank of a plan reads its shards: decoders get the token behind each token as its target, encoders with
/// decoders (T5) the tokens behind a whole row as its continuation.
StreamOptions stream_options(const plan::Settings& plan, const TrainSettings& train, const comm::Communicator& rank);

/// The shards that data.path names: of tokens, or for a model of images of these. Throws InputError(bad_input) for
/// what does not fit the model.
std::unique_ptr<TrainingData> open_training_data(const plan::Settings& plan, const TrainSettings& train,
                                                 const comm::Communicator& rank);
/// Those that data.val_path names; none where it is empty.
std::unique_ptr<ValidationData> open_validation_data(const plan::Settings& plan, const TrainSettings& train,
                                                     const comm::Communicator& rank);

}  // namespace foreshard::train
