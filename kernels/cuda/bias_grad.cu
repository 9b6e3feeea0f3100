// Bound by memory: dy is read once; partial sums, at most 128 rows of them, are written and read once.
#include <algorithm>

#include "kernels/cuda/column_sums.hpp"
#include "kernels/cuda/kernels.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int lanes = 32, row_lanes = 8;
constexpr std::int64_t most_parts = 128, least_rows = 64;

/// A block sums a part of the rows of 32·n columns: eight threads a column take every eighth row.
template <int n, class T>
__global__ void sum_part(Rows o, std::int64_t rows_of_part, const T* dy, float* partial) {
  __shared__ float sums[row_lanes][lanes * n];
  const int lane = threadIdx.x % lanes, row_lane = threadIdx.x / lanes;
  const std::int64_t j = (std::int64_t{blockIdx.x} * lanes + lane) * n, first = blockIdx.y * rows_of_part;
  float sum[n] = {};
  if (j < o.cols) {
    for (std::int64_t i = first + row_lane; i < min(o.rows, first + rows_of_part); i += row_lanes) {
      const Pack<T, n> pack = load<n>(dy + i * o.cols + j);
      for (int k = 0; k < n; ++k) sum[k] += widened(pack.v[k]);
    }
  }
  for (int k = 0; k < n; ++k) sums[row_lane][lane * n + k] = sum[k];
  __syncthreads();
  for (int c = threadIdx.x; c < lanes * n; c += lanes * row_lanes) {
    const std::int64_t col = std::int64_t{blockIdx.x} * lanes * n + c;
    if (col >= o.cols) return;
    float total = 0;
    for (int r = 0; r < row_lanes; ++r) total += sums[r][c];
    partial[blockIdx.y * o.cols + col] = total;
  }
}

template <class T, class Grad>
void sum_columns(const Queue& queue, const Rows& o, bool accumulate, const T* dy, Grad* dbias) {
  constexpr int n = pack_of<T>;
  const bool packs = o.cols % n == 0 && aligned(dy);
  const std::int64_t parts = std::clamp<std::int64_t>(o.rows / least_rows, 1, most_parts),
                     tiles = blocks_for(o.cols, lanes * (packs ? n : 1));
  float* partial = queue.partial<float>(parts * o.cols);
  launch(packs ? sum_part<n, T> : sum_part<1, T>, dim3(static_cast<unsigned>(tiles), static_cast<unsigned>(parts)),
         lanes * row_lanes, 0, queue.stream, o, blocks_for(o.rows, parts), dy, partial);
  total_columns(queue, parts, o.cols, o.cols, partial, accumulate, dbias);
}

}  // namespace

void bias_grad(const Queue& queue, const Rows& o, bool accumulate, Const dy, Mut dbias) {
  by_number(dy.dtype, [&]<class T>(T) {
    by_result_type<T>(dbias.dtype, [&]<class Grad>(Grad) {
      sum_columns(queue, o, accumulate, elements<T>(dy), elements<Grad>(dbias));
    });
  });
}

}  // namespace foreshard::kernels::cuda
