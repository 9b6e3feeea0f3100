#pragma once
#include "contract/comm/elements.hpp"

/// How far sums may be from the exact ones, whatever their order.
namespace foreshard::comm::testing {

/// A sum in long double, of which those here are exact but for a part of `error` that does not count.
struct Bounds {
  long double sum = 0, error = 0;
};

/// Unit roundoff: half the gap between 1 and the next number.
template <class T>
constexpr long double roundoff = 0x1p-24L;
template <>
inline constexpr long double roundoff<double> = 0x1p-53L;
template <>
inline constexpr long double roundoff<Bf16> = 0x1p-8L;
template <>
inline constexpr long double roundoff<F16> = 0x1p-11L;

/// Half the gap between the smallest numbers, where that is more than nothing here.
template <class T>
constexpr long double underflow = 0;
template <>
inline constexpr long double underflow<F16> = 0x1p-25L;

/// n numbers of type T added in any order, each sum rounded to T: |error| <= γ(n − 1) Σ|x|, γ(k) = k·u / (1 − k·u).
/// Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002, eq. 4.4.
template <class T>
Bounds bounded_sum(std::span<const int> members, std::int64_t index, int salt = 0) {
  Bounds bounds;
  long double magnitude = 0;
  for (const int member : members) {
    const long double x = wide(element<T>(member, index, salt));
    bounds.sum += x;
    magnitude += std::abs(x);
  }
  const long double additions = static_cast<long double>(members.size() - 1) * roundoff<T>;
  bounds.error = additions / (1 - additions) * magnitude;
  return bounds;
}

/// What such a sum of T leaves in To: added to `before`, if any, and rounded.
template <class T, class To>
Bounds left_in(Bounds bounds, bool accumulate, To before) {
  if (accumulate) bounds.sum += static_cast<long double>(wide(before));
  const int roundings = accumulate ? 2 : std::is_same_v<T, To> ? 0 : 1;
  bounds.error += roundings * roundoff<To> * (std::abs(bounds.sum) + bounds.error) + underflow<To>;
  return bounds;
}

}  // namespace foreshard::comm::testing
