#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/sha256.hpp"

namespace foreshard::train {

/// A file of a checkpoint, as its manifest lists it.
struct FileEntry {
  std::string name;
  std::int64_t size_bytes = 0;
  std::string sha256;  ///< of all its bytes
};

/// Owns a POSIX file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int id) : id_(id) {}
  ~Descriptor();
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int id() const { return id_; }
  int close();  ///< the answer of close(2)

 private:
  int id_;
};

/// A new file. Bytes are handed to the system as they come; none are kept in memory. Whatever fails is an
/// InputError(runtime_failure) that names the call, the file and the cause.
class DurableFile {
 public:
  /// The file must not exist.
  explicit DurableFile(std::filesystem::path path);

  void write(std::span<const std::byte> bytes);
  /// Returns when all bytes are on disk.
  FileEntry close();

 private:
  void write_all(std::span<const std::byte> bytes);

  std::filesystem::path path_;
  Descriptor file_;
  Sha256 sum_;
  std::int64_t size_bytes_ = 0;
};

/// Reads a listed file from front to back. A file that is missing, of another size or of other bytes is an
/// InputError(bad_input) that names it.
class VerifiedFile {
 public:
  VerifiedFile(const std::filesystem::path& folder, const FileEntry& entry);

  /// The next bytes, not yet verified. Throws if there are not as many.
  void read(std::span<std::byte> bytes);
  /// Throws unless everything was read and is what was written.
  void close();

 private:
  void read_all(std::span<std::byte> bytes);
  [[noreturn]] void refuse(const std::string& why) const;

  std::filesystem::path path_;
  FileEntry entry_;
  Descriptor file_;
  Sha256 sum_;
  std::int64_t read_bytes_ = 0;
};

/// Returns when the names in `folder` are on disk.
void sync_folder(const std::filesystem::path& folder);

}  // namespace foreshard::train
