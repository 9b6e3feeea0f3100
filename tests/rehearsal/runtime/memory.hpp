#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "cuda_runtime_api.h"

namespace rehearsal {

inline constexpr int most_devices = 8;

/// Memory of devices and pinned memory of the host. Device memory has an address that programs see, which faults when
/// it is used, and another, where it really is, for kernels and copies; neither is ever given out twice. In front of
/// and behind every allocation lies memory that faults. New and freed memory is no number.
class Memory {
 public:
  struct Range {
    std::size_t bytes = 0;
    int device = 0;  ///< -1: pinned host memory
    bool freed = false;
  };

  static Memory& instance();

  cudaError_t allocate(int device, std::size_t bytes, void** at);
  cudaError_t free(void*);
  cudaError_t allocate_pinned(std::size_t bytes, void** at);
  cudaError_t free_pinned(void*);

  /// The range that holds the address, or null. It lives as long as it is not freed.
  const Range* find(const void*) const;
  bool is_device_address(const void*) const;  ///< whether or not anything is there
  /// Where a device's address really is.
  static void* real(const void* address);
  static bool is_real(const void*);
  /// Null if `bytes` from `at` lie within one allocation of the device, or in pinned memory; else what is wrong.
  std::string problem(const void* at, std::size_t bytes, int device) const;
  /// "4 bytes beyond the 64 of an allocation of device 0": about an address, by which it is seen or real.
  std::string describe(const void*) const;

  std::size_t total(int device) const;
  std::size_t used(int device) const;
  void set_total(std::size_t bytes_each);
  int live() const;

 private:
  using Ranges = std::map<std::uintptr_t, Range>;
  Memory();
  Ranges::const_iterator at_or_before(std::uintptr_t) const;

  mutable std::mutex mutex_;
  Ranges ranges_;
  std::size_t total_ = std::size_t{1} << 30, used_[most_devices] = {}, next_[most_devices] = {};
};

}  // namespace rehearsal
