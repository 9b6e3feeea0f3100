#pragma once
#include <cstddef>
#include <cstdint>

/// What fake_cuda_runtime.cpp knows of its device.
struct FakeDevice {
  std::size_t capacity = 0, used = 0;
  std::int64_t now = 0;
  std::int64_t busy[8] = {};  ///< when streams will have done what was issued to them
};
extern FakeDevice fake_device;
