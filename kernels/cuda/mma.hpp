#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

/// Matrix products of a warp, in PTX. All 32 lanes call each function together; lane l, group g = l / 4, t = l % 4.
/// Layouts are those of the PTX ISA, "Matrix fragments for mma.m16n8k16" and "ldmatrix".
namespace foreshard::kernels::cuda {

/// D[16, 8] += A[16, 16] · B[16, 8] with sums in f32; T is __nv_bfloat16 or __half, two a register, the first in the
/// lower half. d: rows g, g + 8; columns 2t, 2t + 1: {(g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)}.
/// a: {(g, 2t…), (g + 8, 2t…), (g, 2t + 8…), (g + 8, 2t + 8…)}; b: {(2t…, g), (2t + 8…, g)}, pairs of rows.
template <class T>
__device__ inline void multiply_add(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]);

template <>
__device__ inline void multiply_add<__nv_bfloat16>(float (&d)[4], const std::uint32_t (&a)[4],
                                                   const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
template <>
__device__ inline void multiply_add<__half>(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

/// Four matrices of 8×8 numbers of 16 bits from shared memory: lane 8m + i gives the address of row i of matrix m (16
/// bytes, aligned to them). r[m] of lane l: elements (g, 2t), (g, 2t + 1) of matrix m; transposed: (2t, g), (2t + 1,
/// g).
__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&r)[4], const void* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address)
               : "memory");
}

/// Begins to copy 16 bytes from device memory to shared memory, both aligned to 16, or to fill them with zeros where
/// not `present` (then `from` is not read). Of one thread; `wait_for_copies` and a barrier before others read.
__device__ inline void copy_async(void* to, const void* from, bool present) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(address), "l"(from), "r"(present ? 16 : 0)
               : "memory");
}
/// Ends a group of copies that this thread began.
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;\n" ::: "memory"); }
/// Waits until all but the `pending` latest groups of this thread are there.
template <int pending>
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending) : "memory");
}

}  // namespace foreshard::kernels::cuda
