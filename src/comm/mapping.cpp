#include "comm/mapping.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "base/units.hpp"

namespace foreshard::comm {

namespace {

[[noreturn]] void fail(const char* call, const std::string& on) {
  throw LibraryError(fmt::format("{} failed on {}: {}", call, on, std::strerror(errno)));
}

std::int64_t memory_of_machine() { return std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE); }

[[noreturn]] void refuse(std::int64_t size_bytes) {
  throw InputError(ExitCode::infeasible,
                   fmt::format("a rank needs {} of memory, and this machine has {}\n  {}", bytes_text(size_bytes),
                               bytes_text(memory_of_machine()), what_needs_less_memory));
}

struct stat status_of(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) fail("fstat", "a shared mapping");
  return status;
}

void expect_same(int descriptor, const MappingName& name, const std::string& path) {
  const struct stat status = status_of(descriptor);
  if (status.st_dev == name.device && status.st_ino == name.inode) return;
  throw LibraryError(
      fmt::format("{} is not the memory its owner meant: the ranks see different process numbers", path));
}

}  // namespace

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Mapping::~Mapping() { release(); }

void Mapping::release() noexcept {
  if (data_ != nullptr) munmap(data_, static_cast<std::size_t>(size_bytes_));
  close_name();
}

void Mapping::close_name() noexcept {
  if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
}

Mapping Mapping::map(int descriptor, int flags, std::int64_t size_bytes) {
  Mapping mapping;
  mapping.descriptor_ = descriptor;
  if (size_bytes == 0) return mapping;
  if (size_bytes > memory_of_machine()) refuse(size_bytes);  // else it would end without a word once it is touched
  void* data =
      mmap(nullptr, static_cast<std::size_t>(size_bytes), PROT_READ | PROT_WRITE, flags | MAP_NORESERVE, descriptor, 0);
  if (data == MAP_FAILED && errno == ENOMEM) refuse(size_bytes);
  if (data == MAP_FAILED) fail("mmap", fmt::format("{} bytes", size_bytes));
  mapping.data_ = static_cast<std::byte*>(data);
  mapping.size_bytes_ = size_bytes;
  madvise(data, static_cast<std::size_t>(size_bytes), MADV_HUGEPAGE);  // a wish: shared memory often may not
  return mapping;
}

Mapping Mapping::anonymous(std::int64_t size_bytes) { return map(-1, MAP_PRIVATE | MAP_ANONYMOUS, size_bytes); }

Mapping Mapping::shared(std::int64_t size_bytes) {
  const int descriptor = memfd_create("foreshard", MFD_CLOEXEC);
  if (descriptor < 0) fail("memfd_create", "shared memory");
  Mapping holder;
  holder.descriptor_ = descriptor;
  if (ftruncate(descriptor, size_bytes) != 0) fail("ftruncate", fmt::format("shared memory of {} bytes", size_bytes));
  return map(std::exchange(holder.descriptor_, -1), MAP_SHARED, size_bytes);
}

Mapping Mapping::attach(const MappingName& name, std::int64_t size_bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", name.pid, name.descriptor);
  Mapping holder;
  holder.descriptor_ = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (holder.descriptor_ < 0) fail("open", path);
  expect_same(holder.descriptor_, name, path);
  Mapping mapping = map(std::exchange(holder.descriptor_, -1), MAP_SHARED, size_bytes);
  mapping.close_name();
  return mapping;
}

MappingName Mapping::name() const {
  const struct stat status = status_of(descriptor_);
  return {getpid(), descriptor_, status.st_dev, status.st_ino};
}

}  // namespace foreshard::comm
