// Sums of powers and the largest magnitude: x is read once. Sums are exact, so that no order matters: each thread adds
// leaves to limbs of its own in shared memory, blocks add theirs to the result by integer atomics, and one thread
// carries at the end. Bound by memory, with conversions to double close behind. Compiled without fused multiply-add, so
// that leaves have the bits of kernels/reference.
#include <algorithm>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"
#include "kernels/cuda/warp.hpp"
#include "kernels/powers.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int leaf = 8, words = ExactSum::words;
constexpr int sum_threads = 128, largest_threads = 256;
constexpr std::int64_t most_blocks = 1024;

template <int power, bool packs, class T>
__device__ double leaf_at(std::int64_t count, const T* x) {
  float v[leaf] = {};
  if (packs && count >= leaf) {
    const Pack<T, leaf> pack = load<leaf>(x);
    for (int k = 0; k < leaf; ++k) v[k] = widened(pack.v[k]);
  } else {
    for (int k = 0; k < leaf; ++k) v[k] = k < count ? widened(x[k]) : 0.0F;
  }
  return leaf_of_powers<power>(v);
}

/// The block's sum of each word, added to the result by one thread a word.
__device__ void merge(const std::int64_t* mine, unsigned long long* sum) {
  __syncthreads();
  const int lane = threadIdx.x % warp_lanes;
  for (int w = threadIdx.x / warp_lanes; w < words; w += sum_threads / warp_lanes) {
    std::int64_t total = 0;
    for (int t = lane; t < sum_threads; t += warp_lanes) total += mine[w * sum_threads + t];
    total = over_warp(total, Sum{});
    if (lane == 0 && total != 0) atomicAdd(sum + w, static_cast<unsigned long long>(total));
  }
}

template <int power, bool packs, class T>
__global__ void add_leaves(std::int64_t count, const T* x, unsigned long long* sum) {
  __shared__ std::int64_t limbs[words * sum_threads];  // word w of thread t at [w·threads + t]: no bank conflicts
  for (int w = 0; w < words; ++w) limbs[w * sum_threads + threadIdx.x] = 0;
  const std::int64_t stride = std::int64_t{gridDim.x} * sum_threads * leaf;
  for (std::int64_t i = (std::int64_t{blockIdx.x} * sum_threads + threadIdx.x) * leaf; i < count; i += stride)
    add_exact_here(limbs + threadIdx.x, leaf_at<power, packs>(count - i, x + i), sum_threads);
  merge(limbs, sum);
}

__global__ void carry(std::int64_t* sum) { carry_exact_here(sum); }

template <class T>
__global__ void find_largest(std::int64_t count, const T* x, unsigned long long* largest) {
  float highest = 0;
  bool number = true;
  for (std::int64_t i = std::int64_t{blockIdx.x} * largest_threads + threadIdx.x; i < count;
       i += std::int64_t{gridDim.x} * largest_threads) {
    const float magnitude = fabsf(widened(x[i]));
    number = number && !isnan(magnitude);
    highest = fmaxf(highest, magnitude);
  }
  const double mine = number ? static_cast<double>(highest) : double{NAN};
  const auto bits = static_cast<unsigned long long>(magnitude_bits(mine));
  const unsigned long long of_block = over_block<largest_threads>(bits, Larger{});
  if (threadIdx.x == 0) atomicMax(largest, of_block);
}

template <int power, class T>
void add_leaves_of(const Queue& queue, std::int64_t count, const T* x, std::int64_t* sum) {
  const std::int64_t blocks = std::min(blocks_for(count, sum_threads * leaf), most_blocks);
  launch(aligned(x) ? add_leaves<power, true, T> : add_leaves<power, false, T>, static_cast<unsigned>(blocks),
         sum_threads, 0, queue.stream, count, x, reinterpret_cast<unsigned long long*>(sum));
  launch(carry, 1, 1, 0, queue.stream, sum);
}

}  // namespace

void add_powers(const Queue& queue, int power, std::int64_t count, Const x, std::int64_t* sum) {
  if (count == 0) return;
  by_number(x.dtype, [&]<class T>(T) {
    const Device<T>* data = elements<T>(x);
    power == 1   ? add_leaves_of<1>(queue, count, data, sum)
    : power == 2 ? add_leaves_of<2>(queue, count, data, sum)
                 : add_leaves_of<3>(queue, count, data, sum);
  });
}

void max_magnitude(const Queue& queue, std::int64_t count, Const x, std::int64_t* largest) {
  if (count == 0) return;
  by_number(x.dtype, [&]<class T>(T) {
    const std::int64_t blocks = std::min(blocks_for(count, largest_threads), most_blocks);
    launch(find_largest<Device<T>>, static_cast<unsigned>(blocks), largest_threads, 0, queue.stream, count,
           elements<T>(x), reinterpret_cast<unsigned long long*>(largest));
  });
}

}  // namespace foreshard::kernels::cuda
