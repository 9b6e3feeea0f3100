#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace foreshard::engine::cuda {

/// Zeroed memory of the current device; null for no bytes. Throws LibraryError, which says how much is free.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(std::int64_t size_bytes);
  std::byte* data() const { return data_.get(); }
  std::int64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data(), static_cast<std::size_t>(size_bytes_)}; }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t size_bytes_ = 0;
};

/// Zeroed, locked host memory that the devices reach under the same address.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  explicit PinnedMemory(std::int64_t size_bytes);
  std::byte* data() const { return data_.get(); }
  std::int64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data(), static_cast<std::size_t>(size_bytes_)}; }

 private:
  struct Free {
    void operator()(std::byte* data) const noexcept;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t size_bytes_ = 0;
};

/// A value of T in pinned memory or in device memory.
template <class T, class Memory>
T* as(const Memory& memory) {
  return reinterpret_cast<T*>(memory.data());
}

}  // namespace foreshard::engine::cuda
