#pragma once
#include <cstring>

#include "kernels/cuda/mma.hpp"
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/warp.hpp"

/// Tiles of rows of W numbers in shared memory, and their products on tensor cores. Rows are 16 bytes longer than W, so
/// that the eight rows that ldmatrix reads together lie in different banks.
namespace foreshard::kernels::cuda {

inline constexpr int tile_warps = 4, tile_threads = tile_warps * warp_lanes;

template <int W>
inline constexpr int row_elements = W + 8;

/// Two numbers in a register, the first in the lower half.
template <class Two>
__device__ inline std::uint32_t bits_of(const Two& two) {
  std::uint32_t bits;
  memcpy(&bits, &two, sizeof bits);
  return bits;
}
__device__ inline std::uint32_t paired(float first, float second, __nv_bfloat16) {
  return bits_of(__floats2bfloat162_rn(first, second));
}
__device__ inline std::uint32_t paired(float first, float second, __half) {
  return bits_of(__floats2half2_rn(first, second));
}

/// Rows of `width` ≤ W numbers in device memory; `packs`: each may be read 16 bytes at a time.
template <class T>
struct Source {
  const T* rows;
  std::int64_t stride, count, width;
  bool packs;

  __device__ Source from(std::int64_t row) const { return {rows + row * stride, stride, count - row, width, packs}; }
};

/// Begins to bring the first R rows to a tile, by all threads of the block; absent rows and columns become zeros. They
/// are there after `wait_for_copies` and a barrier.
template <int W, int R, class T>
__device__ inline void bring(const Source<T>& from, T* tile) {
  constexpr int n = access_bytes / sizeof(T), chunks = W / n;
  for (int i = threadIdx.x; i < R * chunks; i += tile_threads) {
    const int row = i / chunks, at = i % chunks * n;
    T* to = tile + row * row_elements<W> + at;
    const T* x = from.rows + row * from.stride + at;
    const bool present = row < from.count;
    if (from.packs) {
      copy_async(to, present && at < from.width ? x : from.rows, present && at < from.width);
    } else {
      for (int k = 0; k < n; ++k) to[k] = present && at + k < from.width ? x[k] : narrowed<T>(0.0F);
    }
  }
}

/// A[16, 16] from (row, column) of a tile on.
template <int W, class T>
__device__ inline void load_a(std::uint32_t (&a)[4], const T* tile, int row, int column) {
  const int matrix = threadIdx.x % warp_lanes / 8, i = threadIdx.x % 8;
  load_matrices(a, tile + (row + matrix % 2 * 8 + i) * row_elements<W> + column + matrix / 2 * 8);
}

/// B[16, 16]: its left and its right eight columns.
struct Halved {
  std::uint32_t left[2], right[2];

  __device__ explicit Halved(const std::uint32_t (&r)[4]) : left{r[0], r[1]}, right{r[2], r[3]} {}
};

/// B whose columns are rows of the tile: column n, row k of B are row n, column k of the tile.
template <int W, class T>
__device__ inline Halved load_b_of_rows(const T* tile, int n, int k) {
  const int matrix = threadIdx.x % warp_lanes / 8, i = threadIdx.x % 8;
  std::uint32_t r[4];
  load_matrices(r, tile + (n + matrix / 2 * 8 + i) * row_elements<W> + k + matrix % 2 * 8);
  return Halved(r);
}
/// B whose rows are rows of the tile.
template <int W, class T>
__device__ inline Halved load_b(const T* tile, int k, int n) {
  const int matrix = threadIdx.x % warp_lanes / 8, i = threadIdx.x % 8;
  std::uint32_t r[4];
  load_matrices_transposed(r, tile + (k + matrix % 2 * 8 + i) * row_elements<W> + n + matrix / 2 * 8);
  return Halved(r);
}

/// Where an element of a block lies: in which 16 rows and which half of them; its row and column are those of the
/// lane's first element and, known when compiled, how far down and right of that it is.
struct Place {
  int m, half, first_row, first_column, down, right;

  __device__ int row() const { return first_row + down; }
  __device__ int column() const { return first_column + right; }
};
__device__ inline int lane_row() { return threadIdx.x % warp_lanes / 4; }
__device__ inline int lane_column() { return threadIdx.x % 4 * 2; }

/// A warp's results: M times 16 rows, of N columns. Lane l has rows l / 4 and l / 4 + 8 of each 16, and of every eight
/// columns 2·(l mod 4) and the next.
template <int M, int N>
struct Block {
  float v[M][N / 8][4];

  __device__ void clear() {
    each([](float& x, Place) { x = 0; });
  }
  /// f(element, its place), for all that this lane has.
  template <class F>
  __device__ void each(F f) {
    each_with(*this, [&](float& x, float, Place at) { f(x, at); });
  }
  /// f(element, the other block's element, their place).
  template <class F>
  __device__ void each_with(const Block& other, F f) {
    const int row = lane_row(), column = lane_column();
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int n = 0; n < N / 8; ++n)
#pragma unroll
        for (int i = 0; i < 4; ++i)
          f(v[m][n][i], other.v[m][n][i], Place{m, i / 2, row, column, 16 * m + i / 2 * 8, 8 * n + i % 2});
  }
};

/// c = rows [row, row + 16·M) of `left` times the first N rows of `right`, transposed; both have W columns.
template <int W, class T, int M, int N>
__device__ inline void multiply_rows(Block<M, N>& c, const T* left, int row, const T* right) {
  c.clear();
#pragma unroll
  for (int k = 0; k < W; k += 16) {
    std::uint32_t a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m) load_a<W>(a[m], left, row + 16 * m, k);
#pragma unroll
    for (int n = 0; n < N; n += 16) {
      const Halved b = load_b_of_rows<W>(right, n, k);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add<T>(c.v[m][n / 8], a[m], b.left);
        multiply_add<T>(c.v[m][n / 8 + 1], a[m], b.right);
      }
    }
  }
}

/// sums += p·tile, of N rows; p is rounded to T.
template <int W, class T, int M, int N>
__device__ inline void add_product(Block<M, W>& sums, const Block<M, N>& p, const T* tile) {
#pragma unroll
  for (int k = 0; k < N; k += 16) {
    std::uint32_t a[M][4];
#pragma unroll
    for (int m = 0; m < M; ++m)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        a[m][i] = paired(p.v[m][k / 8 + i / 2][i % 2 * 2], p.v[m][k / 8 + i / 2][i % 2 * 2 + 1], T{});
#pragma unroll
    for (int n = 0; n < W; n += 16) {
      const Halved b = load_b<W>(tile, k, n);
#pragma unroll
      for (int m = 0; m < M; ++m) {
        multiply_add<T>(sums.v[m][n / 8], a[m], b.left);
        multiply_add<T>(sums.v[m][n / 8 + 1], a[m], b.right);
      }
    }
  }
}

/// Writes a warp's rows from `row` on, those below `rows`, and their first `width` columns.
template <class T, int M, int N>
__device__ inline void write(Block<M, N>& block, std::int64_t row, std::int64_t rows, std::int64_t width, T* to,
                             std::int64_t stride, float scale) {
  block.each([&](float& x, Place at) {
    if (row + at.row() < rows && at.column() < width)
      to[(row + at.row()) * stride + at.column()] = narrowed<T>(x * scale);
  });
}

}  // namespace foreshard::kernels::cuda
