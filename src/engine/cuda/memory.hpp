#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace foreshard::engine::cuda {

/// Bytes that `make` gives and `release` takes back; null for no bytes.
template <std::byte* (*make)(std::int64_t size_bytes), void (*release)(std::byte*) noexcept>
class Memory {
 public:
  Memory() = default;
  explicit Memory(std::int64_t size_bytes) : data_(make(size_bytes)), size_bytes_(size_bytes) {}
  std::byte* data() const { return data_.get(); }
  std::int64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data(), static_cast<std::size_t>(size_bytes_)}; }

 private:
  struct Release {
    void operator()(std::byte* data) const noexcept { release(data); }
  };
  std::unique_ptr<std::byte, Release> data_;
  std::int64_t size_bytes_ = 0;
};

std::byte* device_bytes(std::int64_t size_bytes);
void free_device(std::byte* data) noexcept;
std::byte* pinned_bytes(std::int64_t size_bytes);
void free_pinned(std::byte* data) noexcept;

/// Zeroed memory of the current device. Throws LibraryError, which says how much is free.
using DeviceMemory = Memory<device_bytes, free_device>;
/// Zeroed, locked host memory that the devices reach under the same address.
using PinnedMemory = Memory<pinned_bytes, free_pinned>;

/// A value of T in pinned memory or in device memory.
template <class T, class Memory>
T* as(const Memory& memory) {
  return reinterpret_cast<T*>(memory.data());
}

}  // namespace foreshard::engine::cuda
