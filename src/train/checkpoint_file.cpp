#include "train/checkpoint_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"

namespace foreshard::train {
namespace {

constexpr std::size_t piece_bytes = 1 << 20;  // read or written, then summed while it is in the cache

[[noreturn]] void fail(const char* call, const std::filesystem::path& path) {
  const int error = errno;
  throw InputError(ExitCode::runtime_failure,
                   fmt::format("{} failed on {}: {}", call, path.string(), std::strerror(error)));
}

/// What a system call answers when no signal interrupts it.
template <class Call>
auto uninterrupted(Call call) {
  auto answer = call();
  while (answer < 0 && errno == EINTR) answer = call();
  return answer;
}

int open_new(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) fail("open", path);
  return file;
}

std::int64_t size_of(int file) {
  struct stat status {};
  return fstat(file, &status) == 0 ? status.st_size : -1;
}

}  // namespace

Descriptor::~Descriptor() { close(); }

int Descriptor::close() { return id_ < 0 ? 0 : ::close(std::exchange(id_, -1)); }

DurableFile::DurableFile(std::filesystem::path path) : path_(std::move(path)), file_(open_new(path_)) {}

void DurableFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(piece_bytes, bytes.size()));
    write_all(piece);
    sum_.add(piece);
    bytes = bytes.subspan(piece.size());
  }
}

void DurableFile::write_all(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto written = uninterrupted([&] { return ::write(file_.id(), bytes.data(), bytes.size()); });
    if (written < 0) fail("write", path_);
    size_bytes_ += written;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

FileEntry DurableFile::close() {
  if (uninterrupted([&] { return fsync(file_.id()); }) != 0) fail("fsync", path_);
  if (file_.close() != 0) fail("close", path_);
  return {path_.filename().string(), size_bytes_, sum_.digest()};
}

VerifiedFile::VerifiedFile(const std::filesystem::path& folder, const FileEntry& entry)
    : path_(folder / entry.name), entry_(entry), file_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (file_.id() < 0) refuse(fmt::format("it cannot be opened ({})", std::strerror(errno)));
  const std::int64_t size = size_of(file_.id());
  if (size != entry_.size_bytes)
    refuse(fmt::format("it has {} bytes, the manifest says {}", count_text(size), count_text(entry_.size_bytes)));
}

void VerifiedFile::refuse(const std::string& why) const {
  throw InputError(ExitCode::bad_input, fmt::format("{} is not whole: {}", path_.string(), why));
}

void VerifiedFile::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto piece = bytes.first(std::min(piece_bytes, bytes.size()));
    read_all(piece);
    sum_.add(piece);
    bytes = bytes.subspan(piece.size());
  }
}

void VerifiedFile::read_all(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    const auto count = uninterrupted([&] { return ::read(file_.id(), bytes.data(), bytes.size()); });
    if (count < 0) refuse(fmt::format("it cannot be read ({})", std::strerror(errno)));
    if (count == 0) refuse(fmt::format("it ends after {} bytes", count_text(read_bytes_)));
    read_bytes_ += count;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void VerifiedFile::close() {
  if (read_bytes_ != entry_.size_bytes)
    refuse(fmt::format("it has {} bytes, {} were expected", count_text(entry_.size_bytes), count_text(read_bytes_)));
  if (sum_.digest() != entry_.sha256) refuse("its bytes are not those that were written (SHA-256 differs)");
}

void sync_folder(const std::filesystem::path& folder) {
  Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.id() < 0) fail("open", folder);
  if (uninterrupted([&] { return fsync(file.id()); }) != 0 && errno != EINVAL) fail("fsync", folder);
}

}  // namespace foreshard::train
