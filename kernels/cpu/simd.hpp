#pragma once
#include <cstdint>
#include <cstring>

#include "kernels/cpu/half_vector.hpp"

/// Sixteen floats at once, in the compiler's vector extensions: one AVX-512 register, or what the processor has
/// instead.
namespace foreshard::kernels::cpu {

inline Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }

/// Widens, and rounds as base/half.hpp does.
inline Vec load(const BFloat16* p) { return widened(halves_at(p)); }
inline Vec load(const Float16* p) { return widened_f16(halves_at(p)); }
inline void store(BFloat16* p, Vec v) { put_halves(p, rounded(v)); }
inline void store(Float16* p, Vec v) { put_halves(p, rounded_f16(v)); }

inline Vec broadcast(float x) { return x - Vec{}; }  // one instruction; 0 + x would be two, for −0

/// The first n < 16 numbers at p; the other lanes are `rest`.
template <class T>
Vec load_part(const T* p, std::int64_t n, float rest = 0) {
  Vec v = broadcast(rest);
  for (std::int64_t i = 0; i < n; ++i) v[i] = static_cast<float>(p[i]);
  return v;
}
template <class T>
void store_part(T* p, Vec v, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(v[i]);
}

inline constexpr auto same = [](Vec v) { return v; };  // types of their own, so that `map` has them inline
inline constexpr auto plus = [](Vec u, Vec v) { return u + v; };
inline Vec max(Vec a, Vec b) { return a > b ? a : b; }
inline Vec fma(Vec a, Vec b, Vec c) { return a * b + c; }  // contracted by the compiler

/// Sum and maximum over the lanes, always in the same order.
inline float fold_sum(Vec v) {
  for (int half = 8; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) v[i] += v[i + half];
  }
  return v[0];
}
inline float fold_max(Vec v) {
  float highest = v[0];
  for (int i = 1; i < lanes; ++i) highest = v[i] > highest ? v[i] : highest;
  return highest;
}

/// y[i] = f(a[i], …) for i < n; f takes and returns vectors. y may be one of the inputs.
template <class Output, class F, class... Inputs>
void map(std::int64_t n, Output* y, F f, const Inputs*... inputs) {
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) store(y + i, f(load(inputs + i)...));
  if (i < n) store_part(y + i, f(load_part(inputs + i, n - i)...), n - i);
}

/// Columns that are summed at a time, in an array of floats that stays in the first-level cache.
inline constexpr std::int64_t strip_cols = 16 * lanes;

/// Σ f(a[i], …) for i < n, in four interleaved sums; lanes behind the end are given zeros and must then yield zero.
template <class F, class... Inputs>
float sum(std::int64_t n, F f, const Inputs*... inputs) {
  Vec s[4] = {};
  std::int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    for (int part = 0; part < 4; ++part) s[part] += f(load(inputs + i + part * lanes)...);
  }
  for (; i + lanes <= n; i += lanes) s[0] += f(load(inputs + i)...);
  if (i < n) s[1] += f(load_part(inputs + i, n - i)...);
  return fold_sum((s[0] + s[1]) + (s[2] + s[3]));
}

}  // namespace foreshard::kernels::cpu
