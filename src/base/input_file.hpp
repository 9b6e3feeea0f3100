#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace foreshard {

/// A file that a user named.
struct InputFile {
  std::filesystem::path path;
  std::string_view kind;                           ///< put before the path in messages: "machine file"
  std::string remedy;                              ///< ends messages: what was expected, or what to do
  std::size_t most_bytes = std::size_t{64} << 20;  ///< more is not read, so a device without an end does no harm
};

/// Its whole content. InputError(bad_input) for a folder, for what cannot be read and for more than `most_bytes`.
std::string read_whole(const InputFile& file);

/// Why `path` is no regular file, as "it is a folder"; empty if it is one. Other libraries open it then.
std::string why_no_file(const std::filesystem::path& path);

}  // namespace foreshard
