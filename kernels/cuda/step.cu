// What a step needs besides the numbers: the micro-batch's part of the batch, copies, zeros, and how far the stream has
// come.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int load_threads = 256;

__device__ void put(std::int32_t& to, std::int32_t from) { to = from; }
template <class T>
__device__ void put(T& to, float from) {
  to = narrowed<T>(from);
}

template <class From, class To>
__global__ void load_part(const Step* step, std::int64_t count, const From* staged, To* to) {
  const std::int64_t i = std::int64_t{blockIdx.x} * load_threads + threadIdx.x;
  if (i < count) put(to[i], staged[step->micro_batch * count + i]);
}

__global__ void advance_micro_batch(Step* step) { ++step->micro_batch; }

__global__ void write_mark(volatile std::uint64_t* host_mapped, std::uint64_t value) {
  *host_mapped = value;
  __threadfence_system();
}

}  // namespace

void load_micro_batch(const Queue& queue, const Step* step, std::int64_t count, Const staged, Mut to) {
  if (count == 0) return;
  const auto load = [&]<class From, class To>(const From* from, To* part) {
    launch(load_part<From, To>, static_cast<unsigned>(blocks_for(count, load_threads)), load_threads, 0, queue.stream,
           step, count, from, part);
  };
  if (staged.dtype == DType::i32) return load(as<std::int32_t>(staged), as<std::int32_t>(to));
  by_number(to.dtype, [&]<class T>(T) { load(elements<float>(staged), elements<T>(to)); });
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
