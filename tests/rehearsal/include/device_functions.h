#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "rehearsal/emulation/device.hpp"
#include "vector_types.h"

/// The part of device code that kernels use, on the host.
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __restrict__ __restrict
#define __shared__ static thread_local
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

inline void __syncthreads(const rehearsal::Where& where = rehearsal::Where::current()) { rehearsal::barrier(where); }
inline void __syncwarp(unsigned mask = 0xFFFFFFFFU, const rehearsal::Where& where = rehearsal::Where::current()) {
  rehearsal::synchronise(mask, where);
}

/// Shuffles of lanes in segments of `width`: from a lane outside of the own segment a lane gets what it brought.
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32,
              const rehearsal::Where& where = rehearsal::Where::current()) {
  const int first = static_cast<int>(rehearsal::lane()) & ~(width - 1);
  return rehearsal::from_lane(mask, value, first + (source & (width - 1)), "__shfl_sync", where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32,
                  const rehearsal::Where& where = rehearsal::Where::current()) {
  const int lane = static_cast<int>(rehearsal::lane()), source = lane ^ lane_mask;
  const bool inside = source < (lane & ~(width - 1)) + width;
  return rehearsal::from_lane(mask, value, inside ? source : lane, "__shfl_xor_sync", where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32,
                   const rehearsal::Where& where = rehearsal::Where::current()) {
  const unsigned lane = rehearsal::lane(), segment_end = (lane & ~(width - 1U)) + width;
  return rehearsal::from_lane(mask, value, lane + delta < segment_end ? lane + delta : lane, "__shfl_down_sync", where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32,
                 const rehearsal::Where& where = rehearsal::Where::current()) {
  const unsigned lane = rehearsal::lane(), first = lane & ~(width - 1U);
  return rehearsal::from_lane(mask, value, lane >= first + delta ? lane - delta : lane, "__shfl_up_sync", where);
}

inline unsigned __ballot_sync(unsigned mask, int predicate,
                              const rehearsal::Where& where = rehearsal::Where::current()) {
  const int mine = predicate != 0;
  rehearsal::Meeting& meeting = rehearsal::meet(mask, &mine, sizeof mine, "__ballot_sync", where);
  unsigned votes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if ((mask >> lane & 1U) != 0)
      votes |= static_cast<unsigned>(rehearsal::unseen<int>(rehearsal::brought_by(meeting, lane))) << lane;
  rehearsal::end(meeting);
  return votes;
}
inline int __any_sync(unsigned mask, int predicate, const rehearsal::Where& where = rehearsal::Where::current()) {
  return __ballot_sync(mask, predicate, where) != 0;
}
inline int __all_sync(unsigned mask, int predicate, const rehearsal::Where& where = rehearsal::Where::current()) {
  return __ballot_sync(mask, predicate, where) == mask;
}

/// Atomic operations; they order nothing else.
template <class T>
T rehearsal_atomic(T* at, auto combine) {
  T old = __atomic_load_n(at, __ATOMIC_RELAXED);
  T value;
  do value = combine(old);
  while (!__atomic_compare_exchange_n(at, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}
#define REHEARSAL_ATOMICS(T)                                                                       \
  inline T atomicAdd(T* at, T value) { return __atomic_fetch_add(at, value, __ATOMIC_RELAXED); }   \
  inline T atomicOr(T* at, T value) { return __atomic_fetch_or(at, value, __ATOMIC_RELAXED); }     \
  inline T atomicExch(T* at, T value) { return __atomic_exchange_n(at, value, __ATOMIC_RELAXED); } \
  inline T atomicMax(T* at, T value) {                                                             \
    return rehearsal_atomic(at, [value](T old) { return std::max(old, value); });                  \
  }                                                                                                \
  inline T atomicMin(T* at, T value) {                                                             \
    return rehearsal_atomic(at, [value](T old) { return std::min(old, value); });                  \
  }                                                                                                \
  inline T atomicCAS(T* at, T compare, T value) {                                                  \
    __atomic_compare_exchange_n(at, &compare, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);   \
    return compare;                                                                                \
  }
REHEARSAL_ATOMICS(int)
REHEARSAL_ATOMICS(unsigned int)
REHEARSAL_ATOMICS(unsigned long long)
#undef REHEARSAL_ATOMICS
inline float atomicAdd(float* at, float value) {
  return std::bit_cast<float>(rehearsal_atomic(reinterpret_cast<unsigned*>(at), [value](unsigned old) {
    return std::bit_cast<unsigned>(std::bit_cast<float>(old) + value);
  }));
}

inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) {}

template <class T>
T __ldg(const T* at) {
  return *at;
}
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fmaf_rn(float x, float y, float z) { return std::fma(x, y, z); }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline double __dmul_rn(double x, double y) { return x * y; }
inline double __dadd_rn(double x, double y) { return x + y; }
inline float rsqrtf(float x) { return 1 / std::sqrt(x); }
inline double rsqrt(double x) { return 1 / std::sqrt(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline long long __double_as_longlong(double x) { return std::bit_cast<long long>(x); }
inline double __longlong_as_double(long long x) { return std::bit_cast<double>(x); }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline int __clzll(long long x) { return std::countl_zero(static_cast<unsigned long long>(x)); }
inline int __ffs(int x) { return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1; }
inline unsigned __umulhi(unsigned x, unsigned y) { return static_cast<unsigned>(std::uint64_t{x} * y >> 32); }
using std::isfinite;
using std::isinf;
using std::isnan;
using std::max;
using std::min;
