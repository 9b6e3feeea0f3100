#pragma once
#include <cstdint>
#include <cstring>

#include "base/half.hpp"

/// Sixteen floats at once, in the compiler's vector extensions: one AVX-512 register, or what the processor has
/// instead. Numbers of 16 bits are widened when loaded and rounded when stored (base/half.hpp).
namespace foreshard::kernels::cpu {

inline constexpr std::int64_t lanes = 16;
typedef float Vec __attribute__((vector_size(64)));
typedef std::int32_t IntVec __attribute__((vector_size(64)));
typedef std::uint32_t UintVec __attribute__((vector_size(64)));
typedef std::uint16_t HalfVec __attribute__((vector_size(32)));

inline Vec load(const float* p) {
  Vec v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline Vec load(const BFloat16* p) {
  HalfVec bits;
  std::memcpy(&bits, p, sizeof bits);
  return std::bit_cast<Vec>(__builtin_convertvector(bits, UintVec) << 16);
}
inline Vec load(const Float16* p) {
  Vec v;
  for (int i = 0; i < lanes; ++i) v[i] = static_cast<float>(p[i]);
  return v;
}

inline void store(float* p, Vec v) { std::memcpy(p, &v, sizeof v); }
inline void store(BFloat16* p, Vec v) {
  const auto bits = std::bit_cast<UintVec>(v);
  const UintVec rounded = (bits + 0x7fffU + (bits >> 16 & 1U)) >> 16, quiet = bits >> 16 | 0x40U;
  const HalfVec upper = __builtin_convertvector(v == v ? rounded : quiet, HalfVec);
  std::memcpy(p, &upper, sizeof upper);
}
inline void store(Float16* p, Vec v) {
  for (int i = 0; i < lanes; ++i) p[i] = Float16(v[i]);
}

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
