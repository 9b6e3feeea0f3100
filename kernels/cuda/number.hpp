#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/operand.hpp"

/// Numbers in device code: stored in 16 or 32 bits, computed with in float, rounded once when stored.
namespace foreshard::kernels::cuda {

/// What a type of base/half.hpp is in device code.
template <class T>
struct InDevice {
  using type = T;
};
template <>
struct InDevice<BFloat16> {
  using type = __nv_bfloat16;
};
template <>
struct InDevice<Float16> {
  using type = __half;
};
template <class T>
using Device = typename InDevice<T>::type;

/// The elements of an operand, as device code sees them; null if it is absent. Its type must be T.
template <class T>
const Device<T>* elements(const Const& operand) {
  return reinterpret_cast<const Device<T>*>(as<T>(operand));
}
template <class T>
Device<T>* elements(const Mut& operand) {
  return reinterpret_cast<Device<T>*>(as<T>(operand));
}

/// Calls f with a value of the number type that `type` names.
template <class F>
void by_number(DType type, F f) {
  by_type<float, BFloat16, Float16>(type, f);
}

__device__ inline float widened(float x) { return x; }
__device__ inline float widened(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ inline float widened(__half x) { return __half2float(x); }

template <class T>
__device__ inline T narrowed(float x);
template <>
__device__ inline float narrowed<float>(float x) {
  return x;
}
template <>
__device__ inline __nv_bfloat16 narrowed<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ inline __half narrowed<__half>(float x) {
  return __float2half_rn(x);
}

inline constexpr int access_bytes = 16;  ///< the widest access of one thread

/// n neighbours, read or written in accesses of 16 bytes where they are that many.
template <class T, int n>
struct alignas(n * sizeof(T) < access_bytes ? n * sizeof(T) : access_bytes) Pack {
  T v[n];
};

template <int n, class T>
__device__ inline Pack<T, n> load(const T* x) {
  return *reinterpret_cast<const Pack<T, n>*>(x);
}
template <class T, int n>
__device__ inline void store(T* x, const Pack<T, n>& pack) {
  *reinterpret_cast<Pack<T, n>*>(x) = pack;
}

/// How many elements of the smallest of these types make an access of 16 bytes.
template <class... T>
inline constexpr int pack_of = access_bytes / static_cast<int>(std::min({sizeof(T)...}));

/// Whether all of these may be accessed 16 bytes at a time; null may.
template <class... T>
bool aligned(const T*... x) {
  return ((reinterpret_cast<std::uintptr_t>(x) % access_bytes == 0) && ...);
}

inline constexpr std::int64_t blocks_for(std::int64_t count, std::int64_t per_block) {
  return (count + per_block - 1) / per_block;
}

}  // namespace foreshard::kernels::cuda
