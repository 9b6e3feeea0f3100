#pragma once
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::house {

/// The layer that a source file belongs to, from its path below the project root: "base", "plan", "kernels", "sim",
/// "apps", …; empty for files that no rule governs (tests, build files).
std::string layer_of(const std::filesystem::path& path);

/// What is wrong with one include of the file `path`: a sentence, or nothing. `target` is what stands between the
/// quotes or brackets. The rules:
///   base ◄ model ◄ plan ◄ trace ◄ exec ◄ { engine, sim } ◄ train ◄ apps;  kernels and comm see base only;
///   engine also sees comm and kernels;  sim sees none of comm, kernels, engine, MPI, CUDA;
///   only trace and train/checkpoint see HDF5;  only comm/mpi_* and apps see MPI;  only *cuda*, *nccl* and kernels/cuda
///   see CUDA; only kernels/cpu sees oneDNN;  a project header is named by its path from src/ or the root, never
///   relative to the includer.
std::string problem_with_include(const std::filesystem::path& path, std::string_view target, bool quoted);

/// All violations in the text of one file, each with path and line.
std::vector<std::string> include_problems(const std::filesystem::path& path, std::string_view text);

/// What a source or header includes first, as it stands between the quotes or brackets; empty for nothing.
std::string first_include(std::string_view text);

/// How the header `path` is included: its path from src/ or the project root.
std::string included_as(const std::filesystem::path& path);

}  // namespace foreshard::house
