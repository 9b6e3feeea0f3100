#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.hpp"

namespace foreshard::train {

/// Elements of a type that is known at run time.
class Elements {
 public:
  /// Does not own `data`, of `count` elements.
  Elements(void* data, std::int64_t count, DType dtype)
      : data_(static_cast<std::byte*>(data)), count_(count), dtype_(dtype) {}

  std::int64_t count() const { return count_; }
  DType dtype() const { return dtype_; }
  std::int64_t element_bytes() const { return size_bytes(dtype_); }
  std::byte* data() const { return data_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(count_ * size_bytes(dtype_))}; }

  void set(std::int64_t index, double value) const;  ///< rounded to the type
  double at(std::int64_t index) const;

 private:
  std::byte* data_;
  std::int64_t count_;
  DType dtype_;
};

}  // namespace foreshard::train
