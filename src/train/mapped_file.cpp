#include "train/mapped_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace foreshard::train {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& why) {
  throw InputError(ExitCode::bad_input, fmt::format("{}: {}", path.string(), why));
}

/// The descriptor is not needed afterwards. A pipe is refused rather than waited for.
std::span<const std::byte> map_file(const std::filesystem::path& path, std::string_view what) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) refuse(path, fmt::format("cannot be opened ({})", std::strerror(errno)));
  struct stat facts {};
  const bool regular = fstat(file, &facts) == 0 && S_ISREG(facts.st_mode);
  const auto size = regular ? static_cast<std::size_t>(facts.st_size) : 0;
  void* address = size > 0 ? mmap(nullptr, size, PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
  const int error = errno;
  close(file);
  if (!regular) refuse(path, "is not a regular file");
  if (size == 0) refuse(path, fmt::format("is empty, expected {}", what));
  if (address == MAP_FAILED)
    throw LibraryError(fmt::format("mmap of {} ({} bytes): {}", path.string(), size, std::strerror(error)));
  return {static_cast<const std::byte*>(address), size};
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path, std::string_view what)
    : path_(path), bytes_(map_file(path, what)) {}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace foreshard::train
