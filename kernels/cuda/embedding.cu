// Bound by memory: rows of the tables that are used are read, or read and written, once; x or dx once. The gradient of
// the token table first orders the rows of dx by token, by comparing all pairs of tokens: rows² / 2 steps of integer
// arithmetic, 0.03 ms for 16384 rows where a step takes tens of milliseconds.
#include <cmath>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int threads = 128, order_threads = 256;

/// A token outside the vocabulary gives what is not a number, since a kernel cannot throw.
template <int n, class T>
__global__ void look_up(Embedding o, const std::int32_t* tokens, const T* token_table, const T* position_table, T* x) {
  const std::int64_t row = blockIdx.x, token = o.token(tokens, row);
  const bool known = token >= 0 && token < o.vocab;
  for (std::int64_t at = threadIdx.x * n; at < o.cols; at += threads * n) {
    Pack<T, n> value;
    for (int k = 0; k < n; ++k) value.v[k] = narrowed<T>(NAN);
    if (known) value = load<n>(token_table + token * o.cols + at);
    if (position_table) {
      const Pack<T, n> position = load<n>(position_table + row % o.seq * o.cols + at);
      for (int k = 0; k < n; ++k) value.v[k] = narrowed<T>(widened(value.v[k]) + widened(position.v[k]));
    }
    store(x + row * o.cols + at, value);
  }
}

/// by_token: the rows, ordered by token and then by row; uses: at the place of a token's first row how many it has,
/// else 0.
__global__ void order_rows(Embedding o, const std::int32_t* tokens, std::int32_t* by_token, std::int32_t* uses) {
  const std::int64_t rows = o.rows;
  __shared__ std::int32_t tile[order_threads];
  const std::int64_t row = std::int64_t{blockIdx.x} * order_threads + threadIdx.x;
  const std::int32_t mine = row < rows ? o.token(tokens, row) : 0;
  std::int32_t smaller = 0, same = 0, same_before = 0;
  for (std::int64_t first = 0; first < rows; first += order_threads) {
    __syncthreads();
    if (first + threadIdx.x < rows) tile[threadIdx.x] = o.token(tokens, first + threadIdx.x);
    __syncthreads();
    const int count = static_cast<int>(min(std::int64_t{order_threads}, rows - first));
    for (int k = 0; k < count; ++k) {
      smaller += tile[k] < mine;
      same += tile[k] == mine;
      same_before += tile[k] == mine && first + k < row;
    }
  }
  if (row >= rows) return;
  by_token[smaller + same_before] = static_cast<std::int32_t>(row);
  uses[smaller + same_before] = same_before == 0 ? same : 0;
}

/// A row of a table: (accumulate ? to : 0) + row_of(0) + … + row_of(count − 1) of dx, in that order, rounded once.
template <int n, class T, class Grad, class RowOf>
__device__ void sum_rows(std::int64_t cols, bool accumulate, std::int64_t count, RowOf row_of, const T* dx, Grad* to) {
  for (std::int64_t at = threadIdx.x * n; at < cols; at += threads * n) {
    float sum[n];
    Pack<Grad, n> result{};
    if (accumulate) result = load<n>(to + at);
    for (int k = 0; k < n; ++k) sum[k] = widened(result.v[k]);
#pragma unroll 8
    for (std::int64_t use = 0; use < count; ++use) {
      const Pack<T, n> pack = load<n>(dx + row_of(use) * cols + at);
      for (int k = 0; k < n; ++k) sum[k] += widened(pack.v[k]);
    }
    for (int k = 0; k < n; ++k) result.v[k] = narrowed<Grad>(sum[k]);
    store(to + at, result);
  }
}

template <int n, class T, class Grad>
__global__ void sum_by_token(Embedding o, bool accumulate, const T* dx, const std::int32_t* tokens,
                             const std::int32_t* by_token, const std::int32_t* uses, Grad* table) {
  const std::int64_t place = blockIdx.x, count = uses[place], token = o.token(tokens, by_token[place]);
  if (count == 0 || token < 0 || token >= o.vocab) return;
  const auto row_of = [&](std::int64_t use) { return std::int64_t{by_token[place + use]}; };
  sum_rows<n>(o.cols, accumulate, count, row_of, dx, table + token * o.cols);
}

template <int n, class T, class Grad>
__global__ void sum_by_position(Embedding o, bool accumulate, const T* dx, Grad* table) {
  const std::int64_t position = blockIdx.x;
  const std::int64_t count = position < min(o.seq, o.rows) ? (o.rows - position - 1) / o.seq + 1 : 0;
  const auto row_of = [&](std::int64_t use) { return position + use * o.seq; };
  sum_rows<n>(o.cols, accumulate, count, row_of, dx, table + position * o.cols);
}

template <class T, class Grad>
void token_gradient(const Queue& queue, const Embedding& o, bool accumulate, const T* dx, const std::int32_t* tokens,
                    Grad* table) {
  constexpr int n = pack_of<T, Grad>;
  if (!accumulate) zero(queue, table, o.vocab * o.cols * static_cast<std::int64_t>(sizeof(Grad)));
  if (o.rows == 0) return;
  auto* by_token = queue.partial<std::int32_t>(2 * o.rows);
  launch(order_rows, static_cast<unsigned>(blocks_for(o.rows, order_threads)), order_threads, 0, queue.stream, o,
         tokens, by_token, by_token + o.rows);
  const bool packs = o.cols % n == 0 && aligned(dx, table);
  launch(packs ? sum_by_token<n, T, Grad> : sum_by_token<1, T, Grad>, static_cast<unsigned>(o.rows), threads, 0,
         queue.stream, o, accumulate, dx, tokens, by_token, by_token + o.rows, table);
}

template <class T, class Grad>
void position_gradient(const Queue& queue, const Embedding& o, bool accumulate, const T* dx, Grad* table) {
  constexpr int n = pack_of<T, Grad>;
  const bool packs = o.cols % n == 0 && aligned(dx, table);
  launch(packs ? sum_by_position<n, T, Grad> : sum_by_position<1, T, Grad>,
         static_cast<unsigned>(std::max(o.positions, o.seq)), threads, 0, queue.stream, o, accumulate, dx, table);
}

}  // namespace

void embedding(const Queue& queue, const Embedding& o, Const tokens, Const token_table, Const position_table, Mut x) {
  if (o.rows == 0) return;
  by_number(x.dtype, [&]<class T>(T) {
    constexpr int n = pack_of<T>;
    const Device<T>*table = elements<T>(token_table), *positions = elements<T>(position_table);
    Device<T>* to = elements<T>(x);
    const bool packs = o.cols % n == 0 && aligned(table, positions, to);
    launch(packs ? look_up<n, Device<T>> : look_up<1, Device<T>>, static_cast<unsigned>(o.rows), threads, 0,
           queue.stream, o, as<std::int32_t>(tokens), table, positions, to);
  });
}

void embedding_backward(const Queue& queue, const Embedding& o, bool accumulate, Const dx, Const tokens,
                        Mut d_token_table, Mut d_position_table) {
  by_number(dx.dtype, [&]<class T>(T) {
    by_result_type<T>(type_of_present(d_token_table, d_position_table, dx.dtype), [&]<class Grad>(Grad) {
      if (d_token_table.data)
        token_gradient(queue, o, accumulate, elements<T>(dx), as<std::int32_t>(tokens), elements<Grad>(d_token_table));
      if (d_position_table.data)
        position_gradient(queue, o, accumulate, elements<T>(dx), elements<Grad>(d_position_table));
    });
  });
}

}  // namespace foreshard::kernels::cuda
