#pragma once
#include <algorithm>

#include "kernels/operand.hpp"

namespace foreshard::kernels::reference {

/// The gradient that an update works with: scaled, then cut to ±clip_value.
template <class Grad>
double gradient_of(const Update& o, Grad grad) {
  return std::clamp(static_cast<double>(grad) * o.grad_scale, -o.clip_value, o.clip_value);
}

/// What is stored of element i of the parameters; of 16 bits, after `value` was rounded to f32.
template <class T>
T stored(const Update& o, std::int64_t i, double value) {
  if constexpr (is_half<T>) {
    const auto x = static_cast<float>(value);
    const std::uint32_t random = o.rounding.random(static_cast<std::uint64_t>(i));
    return static_cast<T>(o.rounding.stochastic ? rounded_stochastically(x, random) : x);
  } else {
    return static_cast<T>(value);
  }
}

/// Calls f with a value of the parameter's type and the elements of the gradient, which may be of half the width of the
/// state's type.
template <class F>
void by_update_types(const Mut& parameter, const Const& grad, F f) {
  by_type<float, double, BFloat16>(parameter.dtype, [&]<class T>(T) {
    by_type<Computed<T>, BFloat16, Float16>(grad.dtype, [&]<class Grad>(Grad) { f(T{}, as<Grad>(grad)); });
  });
}

}  // namespace foreshard::kernels::reference
