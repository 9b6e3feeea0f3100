#pragma once
#include <algorithm>

#include "kernels/operand.hpp"

namespace foreshard::kernels::reference {

/// The gradient that an update works with: scaled, then cut to ±clip_value.
template <class Grad>
double gradient_of(const Update& o, Grad grad) {
  return std::clamp(static_cast<double>(grad) * o.grad_scale, -o.clip_value, o.clip_value);
}

/// Calls f with a value of the parameter's type and the elements of the gradient, which may be of half its width.
template <class F>
void by_update_types(const Mut& parameter, const Const& grad, F f) {
  by_type<float, double>(parameter.dtype, [&]<class T>(T) {
    by_type<T, BFloat16, Float16>(grad.dtype, [&]<class Grad>(Grad) { f(T{}, as<Grad>(grad)); });
  });
}

}  // namespace foreshard::kernels::reference
