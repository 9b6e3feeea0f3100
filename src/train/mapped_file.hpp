#pragma once
#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace foreshard::train {

/// A file's bytes, mapped into memory, read only: opening costs nothing however long the file is.
class MappedFile {
 public:
  /// Throws InputError(bad_input) for a file that is missing, empty or not a regular one; `what` says what was
  /// expected.
  MappedFile(const std::filesystem::path& path, std::string_view what);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::filesystem::path path_;
  std::span<const std::byte> bytes_;
};

}  // namespace foreshard::train
