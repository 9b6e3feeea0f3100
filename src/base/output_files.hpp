#pragma once
#include <filesystem>
#include <span>

namespace foreshard {

/// Makes a folder and those around it, where they are not there yet. Throws InputError(usage) that names it and says
/// why it cannot be made.
void make_folder(const std::filesystem::path& folder);

/// Throws InputError(usage) where something that is to be written is one of the files that are read, by whatever name.
void expect_no_input_overwritten(std::span<const std::filesystem::path> outputs,
                                 std::span<const std::filesystem::path> inputs);

}  // namespace foreshard
