#pragma once
#include <gtest/gtest.h>

#include <string>

#include "arrays.hpp"

/// Kernels on numbers of 16 bits, in each format and each backend, against the reference in double on the same inputs.
namespace foreshard::kernels {

using Floats = Array<float>;
using Doubles = Array<double>;

inline constexpr double float_error = 5e-6;  ///< of sums made in f32, relative to the largest element

/// Half the distance of neighbours, relative to the number: what one rounding to T changes at most.
template <class T>
inline constexpr double rounding_error = 0;
template <>
inline constexpr double rounding_error<BFloat16> = 0x1p-8;
template <>
inline constexpr double rounding_error<Float16> = 0x1p-11;

/// Error of a result of type T that was computed in f32 and rounded once.
template <class T>
inline constexpr double allowed = rounding_error<T> + float_error;

template <class T>
bool same_bits(const Array<T>& a, const Array<T>& b) {
  return std::ranges::equal(a.data, b.data, [](T x, T y) { return x.bits == y.bits; });
}

template <class T>
struct Halves : testing::Test {
  std::unique_ptr<Backend> cpu = make_cpu(), reference = make_reference();

  /// Calls check(backend) for both.
  template <class F>
  void in_both(F check) {
    for (Backend* backend : {cpu.get(), reference.get()}) {
      SCOPED_TRACE(std::string(backend->name()));
      check(*backend);
    }
  }
  /// The same, and for both types that gradients of parameters may have: check(backend, value of that type).
  template <class F>
  void with_each_gradient(F check) {
    in_both([&](Backend& backend) {
      check(backend, T{});
      check(backend, float{});
    });
  }
};
using HalfTypes = testing::Types<BFloat16, Float16>;

}  // namespace foreshard::kernels
