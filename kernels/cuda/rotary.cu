// Bound by memory: x is read once and y written once. A block has one position, of which it finds the angles once, in
// double, for all sequences and heads.
#include "kernels/cuda/dynamic_shared.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int threads = 128;

struct Turn {
  float cosine, sine;
};

__device__ void find_turns(const Rotary& o, std::int64_t position, Turn* turns) {
  for (std::int64_t j = threadIdx.x; j < o.width / 2; j += threads) {
    const double frequency = pow(o.base, -2.0 * static_cast<double>(j) / static_cast<double>(o.width));
    double sine, cosine;
    sincos(static_cast<double>(position) * frequency, &sine, &cosine);
    turns[j] = {static_cast<float>(cosine), static_cast<float>(o.back ? -sine : sine)};
  }
}

/// n elements of the first half of a head and those they are turned with.
template <int n, class T>
__device__ void turn(std::int64_t half, const T* x, const Turn* turns, T* y) {
  Pack<T, n> u = load<n>(x), v = load<n>(x + half);
  for (int k = 0; k < n; ++k) {
    const float a = widened(u.v[k]), b = widened(v.v[k]), c = turns[k].cosine, s = turns[k].sine;
    u.v[k] = narrowed<T>(a * c - b * s);
    v.v[k] = narrowed<T>(b * c + a * s);
  }
  store(y, u);
  store(y + half, v);
}

template <int n, class T>
__global__ void turn_rows(Rotary o, const T* x, T* y) {
  Turn* turns = dynamic_shared<Turn>();
  const std::int64_t position = blockIdx.x, half = o.width / 2;
  find_turns(o, position, turns);
  __syncthreads();
  for (std::int64_t row = position; row < o.rows; row += o.seq) {
    for (std::int64_t i = threadIdx.x * n; i < o.heads * half; i += threads * n) {
      const std::int64_t j = i % half, at = (row * o.heads + i / half) * o.width + j;
      turn<n>(half, x + at, turns + j, y + at);
    }
  }
}

}  // namespace

void rotary(const Queue& queue, const Rotary& o, Const x, Mut y) {
  const std::int64_t positions = std::min(o.seq, o.rows);
  if (positions == 0) return;
  by_number(y.dtype, [&]<class T>(T) {
    constexpr int n = pack_of<T>;
    const Device<T>* from = elements<T>(x);
    Device<T>* to = elements<T>(y);
    const bool packs = o.width % (2 * n) == 0 && aligned(from, to);
    launch(packs ? turn_rows<n, Device<T>> : turn_rows<1, Device<T>>, static_cast<unsigned>(positions), threads,
           static_cast<std::size_t>(o.width / 2) * sizeof(Turn), queue.stream, o, from, to);
  });
}

}  // namespace foreshard::kernels::cuda
