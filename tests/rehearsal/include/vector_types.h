#pragma once

/// Vectors of the CUDA runtime, with its alignments.
#define REHEARSAL_VECTOR(T, name)                                              \
  struct alignas(sizeof(T)) name##1 {                                          \
    T x;                                                                       \
  };                                                                           \
  struct alignas(2 * sizeof(T)) name##2 {                                      \
    T x, y;                                                                    \
  };                                                                           \
  struct name##3 {                                                             \
    T x, y, z;                                                                 \
  };                                                                           \
  struct alignas(sizeof(T) < 4 ? 4 * sizeof(T) : 16) name##4 {                 \
    T x, y, z, w;                                                              \
  };                                                                           \
  inline constexpr name##1 make_##name##1(T x) { return {x}; }                 \
  inline constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  inline constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  inline constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

REHEARSAL_VECTOR(signed char, char)
REHEARSAL_VECTOR(unsigned char, uchar)
REHEARSAL_VECTOR(short, short)
REHEARSAL_VECTOR(unsigned short, ushort)
REHEARSAL_VECTOR(int, int)
REHEARSAL_VECTOR(unsigned int, uint)
REHEARSAL_VECTOR(long long, longlong)
REHEARSAL_VECTOR(unsigned long long, ulonglong)
REHEARSAL_VECTOR(float, float)
REHEARSAL_VECTOR(double, double)
#undef REHEARSAL_VECTOR

struct dim3 {
  unsigned int x = 1, y = 1, z = 1;
  constexpr dim3(unsigned int width = 1, unsigned int height = 1, unsigned int depth = 1)
      : x(width), y(height), z(depth) {}
  constexpr operator uint3() const { return {x, y, z}; }
};
