#pragma once
#include <filesystem>

#include "comm/communicator.hpp"
#include "model/model.hpp"
#include "train/training_rank.hpp"

namespace foreshard::train {

/// Collective, between two steps: rank 0 writes all parameters, whole, into one safetensors file that Hugging Face and
/// `ModelWeights` read, in the type in which they are kept; nothing where `path` is empty. Rank 0 holds one parameter
/// at a time. The file appears by a rename, when all of it is on disk. Throws InputError(runtime_failure) on rank 0.
void export_weights(const std::filesystem::path& path, const model::Config& model, comm::Communicator& communicator,
                    TrainingRank& rank);

}  // namespace foreshard::train
