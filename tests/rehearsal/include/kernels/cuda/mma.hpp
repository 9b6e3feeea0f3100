#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

/// Stands before the header of this name in kernels/cuda, which documents these functions. Layouts by the PTX ISA,
/// "Matrix fragments for mma.m16n8k16 with floating point type" and "ldmatrix"; products and sums in f32, in order.
namespace foreshard::kernels::cuda {

struct Fragments {
  std::uint32_t a[4], b[2];
};

inline float half_of(std::uint32_t pair, unsigned upper, __nv_bfloat16) {
  return __bfloat162float({static_cast<std::uint16_t>(pair >> 16 * upper)});
}
inline float half_of(std::uint32_t pair, unsigned upper, __half) {
  return __half2float({static_cast<std::uint16_t>(pair >> 16 * upper)});
}

/// Rows g and g + 8 of a, columns 2t and 2t + 1 of b: what lane 4g + t needs.
template <class T>
struct Operands {
  float a[2][16], b[2][16];

  Operands(const rehearsal::Meeting& meeting, unsigned row, unsigned column) {
    for (unsigned t = 0; t < 4; ++t) read_row(brought(meeting, row * 4 + t), t);
    for (unsigned c = 0; c < 2; ++c)
      for (unsigned t = 0; t < 4; ++t) read_column(brought(meeting, (column + c) * 4 + t), t, c);
  }
  static Fragments brought(const rehearsal::Meeting& meeting, unsigned lane) {
    return rehearsal::unseen<Fragments>(rehearsal::brought_by(meeting, lane));
  }
  void read_row(const Fragments& f, unsigned t) {
    for (unsigned i = 0; i < 8; ++i) a[i / 2 % 2][i / 4 * 8 + 2 * t + i % 2] = half_of(f.a[i / 2], i % 2, T{});
  }
  void read_column(const Fragments& f, unsigned t, unsigned c) {
    for (unsigned i = 0; i < 4; ++i) b[c][i / 2 * 8 + 2 * t + i % 2] = half_of(f.b[i / 2], i % 2, T{});
  }
};

template <class T>
void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2],
                  const rehearsal::Where& where = rehearsal::Where::current()) {
  const Fragments mine = {{a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  rehearsal::Meeting& meeting = rehearsal::meet(0xFFFFFFFFU, &mine, sizeof mine, "mma.sync", where);
  const Operands<T> operands(meeting, rehearsal::lane() / 4, rehearsal::lane() % 4 * 2);
  rehearsal::end(meeting);
  for (unsigned i = 0; i < 4; ++i)
    for (unsigned k = 0; k < 16; ++k) d[i] += operands.a[i / 2][k] * operands.b[i % 2][k];
}

/// Element `column` of a row of 8 numbers that lane 8·matrix + row points to.
inline std::uint32_t element(const rehearsal::Meeting& meeting, unsigned matrix, unsigned row, unsigned column) {
  const auto* numbers = rehearsal::unseen<const std::uint16_t*>(rehearsal::brought_by(meeting, 8 * matrix + row));
  return numbers[column];
}

template <bool transposed>
void load_matrices(std::uint32_t (&r)[4], const void* row, const rehearsal::Where& where) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) rehearsal::fail("ldmatrix: a row is not aligned to 16 bytes");
  rehearsal::Meeting& meeting = rehearsal::meet(0xFFFFFFFFU, &row, sizeof row, "ldmatrix", where);
  const unsigned g = rehearsal::lane() / 4, t = rehearsal::lane() % 4 * 2;
  for (unsigned m = 0; m < 4; ++m)
    r[m] = transposed ? element(meeting, m, t, g) | element(meeting, m, t + 1, g) << 16
                      : element(meeting, m, g, t) | element(meeting, m, g, t + 1) << 16;
  rehearsal::end(meeting);
}
inline void load_matrices(std::uint32_t (&r)[4], const void* row,
                          const rehearsal::Where& where = rehearsal::Where::current()) {
  load_matrices<false>(r, row, where);
}
inline void load_matrices_transposed(std::uint32_t (&r)[4], const void* row,
                                     const rehearsal::Where& where = rehearsal::Where::current()) {
  load_matrices<true>(r, row, where);
}

inline void copy_async(void* to, const void* from, bool present) {
  if ((reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from)) % 16 != 0)
    rehearsal::fail("cp.async: an address is not aligned to 16 bytes");
  rehearsal::copy_later(to, from, present);
}
inline void commit_copies() { rehearsal::end_group_of_copies(); }
template <int pending>
void wait_for_copies() {
  rehearsal::wait_for_groups(pending);
}

}  // namespace foreshard::kernels::cuda
