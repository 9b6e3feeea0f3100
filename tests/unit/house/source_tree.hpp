#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::house {

/// All source files of the project below `root` (C++, CUDA, Python, shell, CMake), as paths relative to `root`, sorted.
/// Build folders, hidden folders and virtual environments are left out.
std::vector<std::filesystem::path> source_files(const std::filesystem::path& root);

bool is_cpp(const std::filesystem::path& path);

std::string read_text(const std::filesystem::path& file);

/// The word of a file's or folder's name (split at _ - .) that says nothing about its subject, or an empty view.
std::string_view empty_word_in(std::string_view name);

}  // namespace foreshard::house
