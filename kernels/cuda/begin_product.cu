// What a product starts from where cuBLASLt cannot add the bias itself. Bound by memory: C is read and written once.
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/matmul.hpp"
#include "kernels/cuda/number.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int threads = 256;

template <class T, class Result>
__global__ void begin(std::int64_t count, std::int64_t n, bool accumulate, const T* bias, Result* c) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= count) return;
  const float before = accumulate ? widened(c[i]) : 0.0F;
  c[i] = narrowed<Result>(before + (bias ? widened(bias[i % n]) : 0.0F));
}

}  // namespace

void begin_product(const Queue& queue, const Matmul& o, Const bias, Mut c) {
  const std::int64_t count = o.m * o.n;
  by_number(bias.dtype, [&]<class T>(T) {
    by_number(c.dtype, [&]<class Result>(Result) {
      launch(begin<Device<T>, Device<Result>>, static_cast<unsigned>(blocks_for(count, threads)), threads, 0,
             queue.stream, count, o.n, o.accumulate, elements<T>(bias), elements<Result>(c));
    });
  });
}

}  // namespace foreshard::kernels::cuda
