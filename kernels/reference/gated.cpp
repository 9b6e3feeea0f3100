#include <cmath>

#include "kernels/reference/gelu.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

using Function = double (*)(double);

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

double silu(double v) { return v * logistic(v); }

double silu_slope(double v) { return logistic(v) * (1 + v * (1 - logistic(v))); }

void forward(Function f, std::int64_t count, Const gate, Const up, Mut y) {
  by_number(y.dtype, [&]<class T>(T) {
    const T *g = as<T>(gate), *u = as<T>(up);
    T* to = as<T>(y);
    for (std::int64_t i = 0; i < count; ++i)
      to[i] = static_cast<T>(f(static_cast<double>(g[i])) * static_cast<double>(u[i]));
  });
}

void backward(Function f, Function slope, std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  by_number(dgate.dtype, [&]<class T>(T) {
    const T *d = as<T>(dy), *g = as<T>(gate), *u = as<T>(up);
    T *to_gate = as<T>(dgate), *to_up = as<T>(dup);
    for (std::int64_t i = 0; i < count; ++i) {
      const double grad = static_cast<double>(d[i]), v = static_cast<double>(g[i]);
      to_gate[i] = static_cast<T>(grad * static_cast<double>(u[i]) * slope(v));
      to_up[i] = static_cast<T>(grad * f(v));
    }
  });
}

}  // namespace

void swiglu(std::int64_t count, Const gate, Const up, Mut y) { forward(silu, count, gate, up, y); }

void swiglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  backward(silu, silu_slope, count, dy, gate, up, dgate, dup);
}

void geglu(std::int64_t count, Const gate, Const up, Mut y) { forward(gelu_value, count, gate, up, y); }

void geglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  backward(gelu_value, gelu_slope, count, dy, gate, up, dgate, dup);
}

}  // namespace foreshard::kernels::reference
