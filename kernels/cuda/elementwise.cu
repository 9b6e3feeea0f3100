// Sums, casts, ReLU, multiples and dropout. Bound by memory: each operand is read and each result written once.
#include <cmath>

#include "base/random.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/map.hpp"

namespace foreshard::kernels::cuda {
namespace {

struct Same {
  __device__ float operator()(float x) const { return x; }
};
struct Plus {
  __device__ float operator()(float a, float b) const { return a + b; }
};

struct Relu {
  __device__ float operator()(float x) const { return x < 0 ? 0.0F : x; }
};
struct ReluBackward {
  __device__ float operator()(float dy, float y) const { return y <= 0 ? 0.0F : dy; }
};
struct Times {
  float factor;
  __device__ float operator()(float x) const { return x * factor; }
};

/// Which elements are kept, and what they are multiplied by.
struct Mask {
  explicit Mask(const Dropout& o)
      : key(o.key),
        stream(o.stream),
        least(static_cast<std::uint64_t>(std::max(0.0, std::ceil(double{o.probability} * 0x1p32 - 0.5)))),
        scale(static_cast<float>(1.0 / (1.0 - double{o.probability}))) {}

  __device__ void follow(const Step* step) {
    if (!step) return;
    key = step->dropout_key;
    stream |= static_cast<std::uint64_t>(step->micro_batch) << 32;
  }
  __device__ float operator()(std::uint32_t word, float x) const { return word >= least ? x * scale : 0.0F; }

  std::uint64_t key, stream;
  std::uint64_t least;  ///< the least word w with uniform(w) ≥ probability; 2^32 if there is none
  float scale;
};

/// n elements a thread, of n / 4 calls of Philox, or one.
template <int n, class T>
__global__ void drop_elements(std::int64_t count, std::uint64_t first, Mask mask, const Step* step, const T* x, T* y) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * map_threads + threadIdx.x) * n;
  if (at >= count) return;
  mask.follow(step);
  const std::uint64_t e = first + static_cast<std::uint64_t>(at);
  if constexpr (n == 1) {
    y[at] = narrowed<T>(mask(philox(mask.key, mask.stream, e / 4)[e % 4], widened(x[at])));
  } else {
    Pack<T, n> pack = load<n>(x + at);
    for (int k = 0; k < n; k += 4) {
      const auto words = philox(mask.key, mask.stream, e / 4 + static_cast<std::uint64_t>(k / 4));
      for (int i = 0; i < 4; ++i) pack.v[k + i] = narrowed<T>(mask(words[i], widened(pack.v[k + i])));
    }
    store(y + at, pack);
  }
}

}  // namespace

void add(const Queue& queue, std::int64_t count, Const a, Const b, Mut sum) {
  by_number(sum.dtype,
            [&]<class T>(T) { map(queue, count, Plus{}, elements<T>(sum), elements<T>(a), elements<T>(b)); });
}

void cast(const Queue& queue, std::int64_t count, bool accumulate, Const from, Mut to) {
  by_number(from.dtype, [&]<class From>(From) {
    by_number(to.dtype, [&]<class To>(To) {
      const Device<From>* x = elements<From>(from);
      Device<To>* y = elements<To>(to);
      if (accumulate) return map(queue, count, Plus{}, y, static_cast<const Device<To>*>(y), x);
      map(queue, count, Same{}, y, x);
    });
  });
}

void relu(const Queue& queue, std::int64_t count, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { map(queue, count, Relu{}, elements<T>(y), elements<T>(x)); });
}

void relu_backward(const Queue& queue, std::int64_t count, Const dy, Const y, Mut dx) {
  by_number(dx.dtype,
            [&]<class T>(T) { map(queue, count, ReluBackward{}, elements<T>(dx), elements<T>(dy), elements<T>(y)); });
}

void scale(const Queue& queue, std::int64_t count, double factor, Const x, Mut y) {
  by_number(y.dtype,
            [&]<class T>(T) { map(queue, count, Times{static_cast<float>(factor)}, elements<T>(y), elements<T>(x)); });
}

void dropout(const Queue& queue, const Step* step, const Dropout& o, Const x, Mut y) {
  if (o.count == 0) return;
  by_number(y.dtype, [&]<class T>(T) {
    constexpr int n = pack_of<T>;
    const Device<T>* from = elements<T>(x);
    Device<T>* to = elements<T>(y);
    const bool packs = aligned(from, to) && o.first % 4 == 0 && o.count % n == 0;
    const auto kernel = packs ? drop_elements<n, Device<T>> : drop_elements<1, Device<T>>;
    const std::int64_t blocks = blocks_for(o.count, map_threads * (packs ? n : 1));
    launch(kernel, static_cast<unsigned>(blocks), map_threads, 0, queue.stream, o.count, o.first, Mask(o), step, from,
           to);
  });
}

}  // namespace foreshard::kernels::cuda
