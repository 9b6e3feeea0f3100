#pragma once
#include <filesystem>
#include <optional>
#include <vector>

#include "train/checkpoint_manifest.hpp"
#include "train/training_rank.hpp"

namespace foreshard::train {

/// What a run goes on from.
struct Resumed {
  std::filesystem::path checkpoint;
  Manifest manifest;
  std::vector<std::filesystem::path> refused;  ///< candidates before it that are not whole; on rank 0
};

/// Collective: loads the first of `candidates` (newest first; only rank 0's count) that is whole on all ranks: its
/// manifest and every file are the bytes that were written, each rank reading its own. One that is not is refused by
/// name, in a warning of the rank that found it. Nothing if there are no candidates.
///
/// Throws InputError, on all ranks together: (bad_input) if there are candidates and none is whole, since starting anew
/// would hide a loss; (usage) if a whole manifest is of another layout than `layout`, naming what differs.
std::optional<Resumed> resume_from(comm::Communicator& communicator, TrainingRank& rank,
                                   const std::vector<std::filesystem::path>& candidates, const nlohmann::json& layout);

}  // namespace foreshard::train
