#pragma once
#include <string>
#include <string_view>

namespace foreshard {

/// "0.1.0"
std::string_view version();

/// Commit that the build was configured from, "-dirty" appended if the tree had changes; empty if unknown.
std::string_view version_commit();

/// For --version: "foreshard 0.1.0" alone on the first line, then one line each for commit, compiler, build type,
/// libraries.
std::string version_text();

/// The same facts as one JSON object.
std::string version_json();

}  // namespace foreshard
