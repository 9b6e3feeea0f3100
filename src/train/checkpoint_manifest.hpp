#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "plan/settings.hpp"
#include "train/checkpoint_file.hpp"

namespace foreshard::train {

/// What a checkpoint is of, besides the shards. The same on all ranks.
struct Manifest {
  std::int64_t step = 0;                       ///< the last one done; data, rates and dropout keys follow from it
  nlohmann::json layout;                       ///< what must be equal for a run to go on exactly from here
  nlohmann::json config;                       ///< all keys of the run that wrote it; may differ, which is said
  std::map<std::string, double> scalars;       ///< finite; state of the run that is in no buffer, by name
  std::map<std::string, std::string> choices;  ///< kernel choices, by name
  std::vector<FileEntry> files;                ///< every other file of the checkpoint
};

/// The manifest as a file: JSON with its own SHA-256, so that no byte of it can change unseen.
std::string text_of(const Manifest& manifest);

/// Throws InputError(bad_input), naming `path`, unless `text` is what `text_of` wrote.
Manifest parse_manifest(const std::string& text, const std::filesystem::path& path);

/// The layout of a run: model, mesh, type, optimizer, seed, rows of a step, and each unit's elements and state buffers.
nlohmann::json layout_of(const plan::Settings& settings, const plan::Plan& plan, const std::string& optimizer,
                         std::uint64_t seed);

/// "model.layers is 4 in the checkpoint and 2 here", one for each value that differs or is on one side only.
std::vector<std::string> differences(const nlohmann::json& saved, const nlohmann::json& here);

}  // namespace foreshard::train
