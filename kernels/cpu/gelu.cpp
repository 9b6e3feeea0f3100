#include "kernels/cpu/gelu.hpp"

#include <initializer_list>
#include <numbers>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

Vec polynomial(Vec x, std::initializer_list<float> coefficients) {
  Vec sum = {};
  for (const float c : coefficients) sum = fma(sum, x, broadcast(c));
  return sum;
}

/// To 6 units of 2^−24: u·P(u²)/Q(u²), the rational minimax approximation on |u| ≤ 4 of Eigen (Eigen/src/Core/
/// MathFunctionsImpl.h, generic_fast_erf_float), ±1 beyond.
Vec erf(Vec u) {
  const Vec z = u * u;
  const Vec p =
      polynomial(z, {-2.72614225801306e-10F, 2.77068142495902e-08F, -2.10102402082508e-06F, -5.69250639462346e-05F,
                     -7.34990630326855e-04F, -2.95459980854025e-03F, -1.60960333262415e-02F});
  const Vec q = polynomial(z, {-1.45660718464996e-05F, -2.13374055278905e-04F, -1.68282697438203e-03F,
                               -7.37332916720468e-03F, -1.42647390514189e-02F});
  const Vec inside = u * p / q;
  return u > 4.0F ? broadcast(1.0F) : u < -4.0F ? broadcast(-1.0F) : inside;
}

/// The normal distribution's probability below x.
Vec below(Vec x) { return 0.5F + 0.5F * erf(x * (1 / std::numbers::sqrt2_v<float>)); }

Vec exact_slope(Vec x) {
  constexpr float density = 0.398942280401432678F;  // 1/√(2π)
  return below(x) + x * density * exp(-0.5F * x * x);
}

template <class T, class F>
void forward(std::int64_t count, const T* x, T* y, F f) {
  share(count, grain_elements,
        [=](std::int64_t begin, std::int64_t end) { map(end - begin, y + begin, f, x + begin); });
}

template <class T, class F>
void backward(std::int64_t count, const T* dy, const T* x, T* dx, F slope_at) {
  share(count, grain_elements, [=](std::int64_t begin, std::int64_t end) {
    map(
        end - begin, dx + begin, [slope_at](Vec d, Vec v) { return d * slope_at(v); }, dy + begin, x + begin);
  });
}

}  // namespace

void gelu(std::int64_t count, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { forward(count, as<T>(x), as<T>(y), [](Vec v) { return v * gelu_gate(v); }); });
}

void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) {
  by_number(dx.dtype,
            [&]<class T>(T) { backward(count, as<T>(dy), as<T>(x), as<T>(dx), [](Vec v) { return gelu_slope(v); }); });
}

void gelu_exact(std::int64_t count, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { forward(count, as<T>(x), as<T>(y), [](Vec v) { return v * below(v); }); });
}

void gelu_exact_backward(std::int64_t count, Const dy, Const x, Mut dx) {
  by_number(dx.dtype,
            [&]<class T>(T) { backward(count, as<T>(dy), as<T>(x), as<T>(dx), [](Vec v) { return exact_slope(v); }); });
}

}  // namespace foreshard::kernels::cpu
