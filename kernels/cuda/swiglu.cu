// Bound by memory: each operand is read and each result written once, the two gradients in one pass.
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/map.hpp"

namespace foreshard::kernels::cuda {
namespace {

__device__ float logistic(float x) { return 1.0F / (1.0F + expf(-x)); }

struct SwiGlu {
  __device__ float operator()(float gate, float up) const { return gate * logistic(gate) * up; }
};

struct Gradients {
  float gate, up;
};
__device__ Gradients gradients(float dy, float gate, float up) {
  const float s = logistic(gate);
  return {dy * up * s * (1.0F + gate * (1.0F - s)), dy * gate * s};
}

template <int n, class T>
__global__ void differentiate(std::int64_t count, const T* dy, const T* gate, const T* up, T* dgate, T* dup) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * map_threads + threadIdx.x) * n;
  if (at >= count) return;
  const Pack<T, n> d = load<n>(dy + at), g = load<n>(gate + at), u = load<n>(up + at);
  Pack<T, n> to_gate, to_up;
  for (int k = 0; k < n; ++k) {
    const Gradients of = gradients(widened(d.v[k]), widened(g.v[k]), widened(u.v[k]));
    to_gate.v[k] = narrowed<T>(of.gate);
    to_up.v[k] = narrowed<T>(of.up);
  }
  store(dgate + at, to_gate);
  store(dup + at, to_up);
}

template <class T>
void differentiate_all(const Queue& queue, std::int64_t count, const T* dy, const T* gate, const T* up, T* dgate,
                       T* dup) {
  constexpr int n = pack_of<T>;
  const bool packs = count % n == 0 && aligned(dy, gate, up, dgate, dup);
  const std::int64_t blocks = blocks_for(count, map_threads * (packs ? n : 1));
  launch(packs ? differentiate<n, T> : differentiate<1, T>, static_cast<unsigned>(blocks), map_threads, 0, queue.stream,
         count, dy, gate, up, dgate, dup);
}

}  // namespace

void swiglu(const Queue& queue, std::int64_t count, Const gate, Const up, Mut y) {
  by_number(y.dtype,
            [&]<class T>(T) { map(queue, count, SwiGlu{}, elements<T>(y), elements<T>(gate), elements<T>(up)); });
}

void swiglu_backward(const Queue& queue, std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  if (count == 0) return;
  by_number(dgate.dtype, [&]<class T>(T) {
    differentiate_all(queue, count, elements<T>(dy), elements<T>(gate), elements<T>(up), elements<T>(dgate),
                      elements<T>(dup));
  });
}

}  // namespace foreshard::kernels::cuda
