#include "kernels/cpu/gelu.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

struct Silu {
  static Vec logistic(Vec x) { return 1.0F / (1.0F + exp(-x)); }
  static Vec value(Vec x) { return x * logistic(x); }
  static Vec slope(Vec x) {
    const Vec s = logistic(x);
    return s * (1.0F + x * (1.0F - s));
  }
};

struct Gelu {
  static Vec value(Vec x) { return x * gelu_gate(x); }
  static Vec slope(Vec x) { return gelu_slope(x); }
};

template <class F>
void forward(std::int64_t count, Const gate, Const up, Mut y) {
  by_number(y.dtype, [&]<class T>(T) {
    const T *g = as<T>(gate), *u = as<T>(up);
    T* to = as<T>(y);
    share(count, grain_elements, [=](std::int64_t begin, std::int64_t end) {
      map(
          end - begin, to + begin, [](Vec v, Vec w) { return F::value(v) * w; }, g + begin, u + begin);
    });
  });
}

/// Both gradients of 16 or fewer elements at a time, since dgate may be dy.
template <class F, class T>
void backward(std::int64_t begin, std::int64_t end, const T* dy, const T* gate, const T* up, T* dgate, T* dup) {
  for (std::int64_t i = begin; i < end; i += lanes) {
    const std::int64_t n = std::min<std::int64_t>(lanes, end - i);
    map(
        n, dup + i, [](Vec d, Vec g) { return d * F::value(g); }, dy + i, gate + i);
    map(
        n, dgate + i, [](Vec d, Vec g, Vec u) { return d * u * F::slope(g); }, dy + i, gate + i, up + i);
  }
}

template <class F>
void backward_all(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  by_number(dgate.dtype, [&]<class T>(T) {
    const T *d = as<T>(dy), *g = as<T>(gate), *u = as<T>(up);
    T *to_gate = as<T>(dgate), *to_up = as<T>(dup);
    share(count, grain_elements,
          [=](std::int64_t begin, std::int64_t end) { backward<F>(begin, end, d, g, u, to_gate, to_up); });
  });
}

}  // namespace

void swiglu(std::int64_t count, Const gate, Const up, Mut y) { forward<Silu>(count, gate, up, y); }

void swiglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  backward_all<Silu>(count, dy, gate, up, dgate, dup);
}

void geglu(std::int64_t count, Const gate, Const up, Mut y) { forward<Gelu>(count, gate, up, y); }

void geglu_backward(std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  backward_all<Gelu>(count, dy, gate, up, dgate, dup);
}

}  // namespace foreshard::kernels::cpu
