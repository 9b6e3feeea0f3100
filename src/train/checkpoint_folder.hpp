#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace foreshard::train {

/// Names of checkpoints, and what is done to their folders by one process (rank 0). A checkpoint is the folder
/// `step-00000100`, which appears complete, by one rename; `.tmp-step-00000100` is being written, and left over if a
/// run was killed. What fails is an InputError(runtime_failure) that names folder and cause.
constexpr const char* manifest_name = "manifest.json";

std::string checkpoint_name(std::int64_t step);
std::optional<std::int64_t> step_of(const std::filesystem::path& checkpoint);  ///< by its name

/// Checkpoints in `folder`, newest step first; none where there is no folder.
std::vector<std::filesystem::path> checkpoints_in(const std::filesystem::path& folder);

/// Checkpoints of all runs RUNS/TIME/checkpoints, those of the newest run first.
std::vector<std::filesystem::path> checkpoints_of_runs(const std::filesystem::path& runs);

/// Removes what earlier saves left unfinished and makes `folder`/.tmp-step-…, empty.
std::filesystem::path begin_checkpoint(const std::filesystem::path& folder, std::int64_t step);

/// Gives a finished temporary folder its name, once its bytes and its name are sure to be on disk.
std::filesystem::path complete_checkpoint(const std::filesystem::path& temporary);

/// Removes all but the newest `keep` checkpoints; 0 keeps all. One that is being removed is no checkpoint any more.
void remove_old_checkpoints(const std::filesystem::path& folder, std::int64_t keep);

/// Takes a checkpoint out of the way, as `damaged-step-…`, without losing a byte. Its new name.
std::filesystem::path set_aside(const std::filesystem::path& checkpoint);

}  // namespace foreshard::train
