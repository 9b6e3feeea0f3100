#pragma once
#include <filesystem>

#include "train/checkpoint_manifest.hpp"
#include "train/checkpoint_state.hpp"

namespace foreshard::train {

/// Where and how checkpoints are written.
struct SaveOptions {
  std::filesystem::path folder;  ///< of checkpoints; only rank 0's is used
  std::int64_t keep = 3;         ///< newest ones that stay; 0 = all
  WritePoint at_point = [](std::string_view) {};
};

/// Collective, between two steps: writes the checkpoint of `manifest.step`, of which the rest must be the same on all
/// ranks but for `files`, which is filled in here. Each rank writes its own shards; nothing is gathered but names and
/// digests. The checkpoint appears by one rename after all its bytes are on disk, and only then are old ones removed;
/// so whenever the run is killed, the newest complete one stays. If anything fails on any rank, the unfinished folder
/// is removed and all ranks end together, as in `together`. Returns the checkpoint's path, on rank 0.
std::filesystem::path save_checkpoint(comm::Communicator& communicator, TrainingRank& rank, Manifest manifest,
                                      const SaveOptions& options);

}  // namespace foreshard::train
