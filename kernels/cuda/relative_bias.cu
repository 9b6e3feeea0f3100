// Biases by distance, of a table by bucket. Small: seq·heads numbers. The host finds the buckets, since where one ends
// hangs on how a logarithm is rounded.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/launch.hpp"
#include "kernels/cuda/number.hpp"

namespace foreshard::kernels::cuda {
namespace {

constexpr int threads = 128, farthest = 1024;

/// The bucket of each distance; those beyond `last` have its own.
struct Buckets {
  explicit Buckets(const RelativeBias& o) : last(static_cast<int>(std::min(o.max_distance, o.seq))) {
    FORESHARD_EXPECT(last <= farthest && o.buckets <= 256, "more buckets or distances than a kernel is told");
    for (int d = 0; d <= last; ++d) {
      ahead[d] = static_cast<std::uint8_t>(o.bucket(d));
      behind[d] = static_cast<std::uint8_t>(o.bucket(-d));
    }
  }
  __device__ std::int64_t of(std::int64_t distance) const {
    const std::int64_t away = distance < 0 ? -distance : distance, known = away < last ? away : last;
    return distance < 0 ? behind[known] : ahead[known];
  }

  int last;
  std::uint8_t ahead[farthest + 1], behind[farthest + 1];
};

template <class T>
__global__ void look_up(RelativeBias o, Buckets buckets, const T* table, T* bias) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= o.heads * o.distances()) return;
  const std::int64_t head = i / o.distances(), distance = i % o.distances() + 1 - o.seq;
  bias[i] = table[buckets.of(distance) * o.heads + head];
}

/// An element of the table a thread: the sum of its distances', in order.
template <class T, class Grad>
__global__ void sum_buckets(RelativeBias o, Buckets buckets, bool accumulate, const T* dbias, Grad* dtable) {
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= o.buckets * o.heads) return;
  const std::int64_t bucket = i / o.heads, head = i % o.heads;
  float sum = accumulate ? widened(dtable[i]) : 0.0F;
  for (std::int64_t d = 1 - o.seq; d < o.seq; ++d)
    if (buckets.of(d) == bucket) sum += widened(dbias[head * o.distances() + d + o.seq - 1]);
  dtable[i] = narrowed<Grad>(sum);
}

}  // namespace

void relative_bias(const Queue& queue, const RelativeBias& o, Const table, Mut bias) {
  by_number(bias.dtype, [&]<class T>(T) {
    launch(look_up<Device<T>>, static_cast<unsigned>(blocks_for(o.heads * o.distances(), threads)), threads, 0,
           queue.stream, o, Buckets(o), elements<T>(table), elements<T>(bias));
  });
}

void relative_bias_backward(const Queue& queue, const RelativeBias& o, bool accumulate, Const dbias, Mut dtable) {
  by_number(dbias.dtype, [&]<class T>(T) {
    by_result_type<T>(dtable.dtype, [&]<class Grad>(Grad) {
      launch(sum_buckets<Device<T>, Device<Grad>>, static_cast<unsigned>(blocks_for(o.buckets * o.heads, threads)),
             threads, 0, queue.stream, o, Buckets(o), accumulate, elements<T>(dbias), elements<Grad>(dtable));
    });
  });
}

}  // namespace foreshard::kernels::cuda
