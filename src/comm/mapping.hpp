#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace foreshard::comm {

/// How another process of the same node finds a shared mapping.
struct MappingName {
  std::int64_t pid = 0;
  std::int64_t descriptor = -1;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
};

/// Zeroed memory of whole pages, none of them touched; given back when it goes.
class Mapping {
 public:
  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  /// For the threads of this process.
  static Mapping anonymous(std::int64_t size_bytes);

  /// For this process and those that `attach` its name. It is a memfd: bounded by the node's memory alone, where MPI
  /// windows and shm_open are bounded by /dev/shm (64 MiB in many containers) and end in SIGBUS when that fills up; and
  /// it leaves nothing behind when a process dies. Throws LibraryError.
  static Mapping shared(std::int64_t size_bytes);

  /// Maps what the process `name.pid` made with `shared`, while that is open there. Throws LibraryError, also when the
  /// name means something else here (the ranks are in different process namespaces).
  static Mapping attach(const MappingName& name, std::int64_t size_bytes);

  /// Of a shared mapping.
  MappingName name() const;

  /// After all others attached: the name means nothing any more.
  void close_name() noexcept;

  std::byte* data() const { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes_)}; }

 private:
  static Mapping map(int descriptor, int flags, std::int64_t size_bytes);
  void release() noexcept;

  std::byte* data_ = nullptr;
  std::int64_t size_bytes_ = 0;
  int descriptor_ = -1;
};

}  // namespace foreshard::comm
