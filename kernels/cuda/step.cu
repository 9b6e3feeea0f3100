// What a step needs besides the numbers: the micro-batch's rows, copies, zeros, and how far the stream has come.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int load_threads = 256;

__global__ void load_rows(const Step* step, std::int64_t rows, const std::int32_t* staged_tokens,
                          const std::int32_t* staged_targets, std::int32_t* tokens, std::int32_t* targets) {
  const std::int64_t row = std::int64_t{blockIdx.x} * load_threads + threadIdx.x, first = step->micro_batch * rows;
  if (row >= rows) return;
  tokens[row] = staged_tokens[first + row];
  targets[row] = staged_targets[first + row];
}

__global__ void advance_micro_batch(Step* step) { ++step->micro_batch; }

__global__ void write_mark(volatile std::uint64_t* host_mapped, std::uint64_t value) {
  *host_mapped = value;
  __threadfence_system();
}

}  // namespace

void load_batch(const Queue& queue, const Step* step, std::int64_t rows, const std::int32_t* staged_tokens,
                const std::int32_t* staged_targets, std::int32_t* tokens, std::int32_t* targets) {
  if (rows == 0) return;
  launch(load_rows, static_cast<unsigned>(blocks_for(rows, load_threads)), load_threads, 0, queue.stream, step, rows,
         staged_tokens, staged_targets, tokens, targets);
}

void copy(const Queue& queue, const void* from, void* to, std::int64_t bytes) {
  if (bytes == 0) return;
  check(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDefault, queue.stream), "cudaMemcpyAsync");
}

void zero(const Queue& queue, void* to, std::int64_t bytes) {
  if (bytes == 0) return;
  check(cudaMemsetAsync(to, 0, static_cast<std::size_t>(bytes), queue.stream), "cudaMemsetAsync");
}

void advance(const Queue& queue, Step* step) { launch(advance_micro_batch, 1, 1, 0, queue.stream, step); }

void mark(const Queue& queue, std::uint64_t* host_mapped, std::uint64_t value) {
  launch(write_mark, 1, 1, 0, queue.stream, host_mapped, value);
}

}  // namespace foreshard::kernels::cuda
