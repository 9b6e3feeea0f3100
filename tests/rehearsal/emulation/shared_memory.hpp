#pragma once
#include <cstddef>
#include <span>
#include <vector>

namespace rehearsal {

/// Bytes that are not a number as f64, f32, bf16 and f16, nor a small integer.
void poison(void* at, std::size_t bytes);

/// The static shared memory of a kernel's library on this thread: all its thread-local variables, if it is not the
/// program itself (which has others too). What a kernel writes is learned from its first blocks, since all kernels'
/// together may be hundreds of kilobytes.
class StaticShared {
 public:
  static StaticShared& of(const void* kernel);

  void before_block();  ///< no number
  void after_block();

 private:
  explicit StaticShared(std::span<char> all) : all_(all) {}
  bool learns() const;
  std::span<char> chunk(std::size_t number) const;

  std::span<char> all_;
  std::vector<std::size_t> written_;  ///< chunks
  int blocks_ = 0;
};

/// Dynamic shared memory of this thread: `bytes` (rounded up to 16), then memory that faults.
std::span<char> dynamic_shared_memory_of(std::size_t bytes);

}  // namespace rehearsal
