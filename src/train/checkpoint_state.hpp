#pragma once
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "train/checkpoint_file.hpp"
#include "train/training_rank.hpp"

namespace foreshard::train {

/// Called at each point where a save may be interrupted; for tests.
using WritePoint = std::function<void(std::string_view point)>;

/// A buffer that training carries from one step to the next.
struct StateBuffer {
  std::string name;  ///< "u0.parameters.0", "u0.optimizer.0", "u0.optimizer.1": unit, memory class, index
  plan::BufferId buffer;
};

/// The persistent buffers of parameters and optimizer, in the plan's order. All else of a step is made anew in it.
std::vector<StateBuffer> state_of(const plan::Plan& plan);

/// What a rank carries besides, as the manifest's scalars, and back; a scalar that is not there keeps its first value.
std::map<std::string, double> scalars_of(const UpdateState& state);
UpdateState update_state_of(const std::map<std::string, double>& scalars);

/// "rank-00003.safetensors"
std::string state_file_name(int rank);

/// Writes this rank's shards: the safetensors layout, an 8-byte length, a JSON header that tells each buffer's place,
/// and the buffers' bytes as they lie in the arena. Needs no memory of its own. Throws as DurableFile does.
FileEntry write_state(const std::filesystem::path& path, TrainingRank& rank, const WritePoint& at);

/// Reads them back into the arena, which is in an undefined state if this throws. Throws as VerifiedFile does, and
/// where the header is not the one that `write_state` would write now.
void read_state(const std::filesystem::path& folder, const FileEntry& entry, TrainingRank& rank);

}  // namespace foreshard::train
