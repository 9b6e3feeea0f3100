#include "kernels/cpu/exp.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

Vec logistic(Vec x) { return 1.0F / (1.0F + exp(-x)); }

Vec slope(Vec x) {
  const Vec s = logistic(x);
  return s * (1.0F + x * (1.0F - s));
}

/// Both gradients of 16 or fewer elements at a time, since dgate may be dy.
template <class T>
void backward(std::int64_t begin, std::int64_t end, const T* dy, const T* gate, const T* up, T* dgate, T* dup) {
  for (std::int64_t i = begin; i < end; i += lanes) {
    const std::int64_t n = std::min<std::int64_t>(lanes, end - i);
    map(
        n, dup + i, [](Vec d, Vec g) { return d * g * logistic(g); }, dy + i, gate + i);
    map(
        n, dgate + i, [](Vec d, Vec g, Vec u) { return d * u * slope(g); }, dy + i, gate + i, up + i);
  }
}

}  // namespace

void swiglu(std::int64_t count, Const gate, Const up, Mut y) {
  by_number(y.dtype, [&]<class T>(T) {
    const T *g = as<T>(gate), *u = as<T>(up);
    T* to = as<T>(y);
    share(count, grain_elements, [=](std::int64_t begin, std::int64_t end) {
      map(
          end - begin, to + begin, [](Vec v, Vec w) { return v * logistic(v) * w; }, g + begin, u + begin);
    });
  });
}

void swiglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  by_number(dgate.dtype, [&]<class T>(T) {
    const T *d = as<T>(dy), *g = as<T>(gate), *u = as<T>(up);
    T *to_gate = as<T>(dgate), *to_up = as<T>(dup);
    share(count, grain_elements,
          [=](std::int64_t begin, std::int64_t end) { backward(begin, end, d, g, u, to_gate, to_up); });
  });
}

}  // namespace foreshard::kernels::cpu
