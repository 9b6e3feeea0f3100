#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <vector>

#include "base/random.hpp"
#include "kernels/backend.hpp"
#include "kernels/operand.hpp"

namespace foreshard::kernels {

/// A typed array that is an operand; filled from (seed, index), the same numbers in every type that can hold them.
template <class T>
struct Array {
  Array() = default;
  explicit Array(std::int64_t count, T value = T{}) : data(static_cast<std::size_t>(count), value) {}
  static Array random(std::int64_t count, std::uint64_t seed, double spread = 1) {
    Array a(count);
    for (std::int64_t i = 0; i < count; ++i) a[i] = static_cast<T>(static_cast<float>(spread * normal(seed, i)));
    return a;
  }
  template <class U>
  explicit Array(const Array<U>& other) {
    for (const U& value : other.data) data.push_back(static_cast<T>(value));
  }

  T& operator[](std::int64_t i) { return data[static_cast<std::size_t>(i)]; }
  const T& operator[](std::int64_t i) const { return data[static_cast<std::size_t>(i)]; }
  std::int64_t size() const { return static_cast<std::int64_t>(data.size()); }
  operator Const() const { return {data.empty() ? nullptr : data.data(), dtype_of<T>}; }
  operator Mut() { return {data.empty() ? nullptr : data.data(), dtype_of<T>}; }

  std::vector<T> data;
};

using Tokens = Array<std::int32_t>;

inline Tokens random_tokens(std::int64_t count, std::int64_t vocab, std::uint64_t seed) {
  Tokens t(count);
  for (std::int64_t i = 0; i < count; ++i) {
    t[i] = static_cast<std::int32_t>(philox(seed, 1, static_cast<std::uint64_t>(i))[0] %
                                     static_cast<std::uint64_t>(vocab));
  }
  return t;
}

/// Largest difference, relative to the largest element of `truth`; infinite if a value is not finite.
template <class T, class U>
double error(const Array<T>& seen, const Array<U>& truth) {
  double largest = 0, difference = 0;
  for (std::int64_t i = 0; i < truth.size(); ++i) {
    if (!std::isfinite(static_cast<double>(seen[i]))) return INFINITY;
    largest = std::max(largest, std::abs(static_cast<double>(truth[i])));
    difference = std::max(difference, std::abs(static_cast<double>(seen[i]) - static_cast<double>(truth[i])));
  }
  return largest > 0 ? difference / largest : difference;
}

}  // namespace foreshard::kernels
