// SwiGLU and GEGLU. Bound by memory: each operand is read and each result written once, the two gradients in one pass.
#include "kernels/cuda/gelu.hpp"
#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/map.hpp"

namespace foreshard::kernels::cuda {
namespace {

struct LogisticGate {
  static __device__ float part(float x) { return 1.0F / (1.0F + expf(-x)); }
  static __device__ float value(float x) { return x * part(x); }
  static __device__ float slope(float x) { return part(x) * (1.0F + x * (1.0F - part(x))); }
};

template <class Gate>
struct Gated {
  __device__ float operator()(float gate, float up) const { return Gate::value(gate) * up; }
};

template <class Gate, int n, class T>
__global__ void differentiate(std::int64_t count, const T* dy, const T* gate, const T* up, T* dgate, T* dup) {
  const std::int64_t at = (std::int64_t{blockIdx.x} * map_threads + threadIdx.x) * n;
  if (at >= count) return;
  const Pack<T, n> d = load<n>(dy + at), g = load<n>(gate + at), u = load<n>(up + at);
  Pack<T, n> to_gate, to_up;
  for (int k = 0; k < n; ++k) {
    const float grad = widened(d.v[k]), x = widened(g.v[k]);
    to_gate.v[k] = narrowed<T>(grad * widened(u.v[k]) * Gate::slope(x));
    to_up.v[k] = narrowed<T>(grad * Gate::value(x));
  }
  store(dgate + at, to_gate);
  store(dup + at, to_up);
}

template <class Gate>
void forward(const Queue& queue, std::int64_t count, const Const& gate, const Const& up, const Mut& y) {
  by_number(y.dtype,
            [&]<class T>(T) { map(queue, count, Gated<Gate>{}, elements<T>(y), elements<T>(gate), elements<T>(up)); });
}

template <class Gate, class T>
void differentiate_all(const Queue& queue, std::int64_t count, const T* dy, const T* gate, const T* up, T* dgate,
                       T* dup) {
  constexpr int n = pack_of<T>;
  const bool packs = count % n == 0 && aligned(dy, gate, up, dgate, dup);
  const std::int64_t blocks = blocks_for(count, map_threads * (packs ? n : 1));
  launch(packs ? differentiate<Gate, n, T> : differentiate<Gate, 1, T>, static_cast<unsigned>(blocks), map_threads, 0,
         queue.stream, count, dy, gate, up, dgate, dup);
}

template <class Gate>
void backward(const Queue& queue, std::int64_t count, const Const& dy, const Const& gate, const Const& up,
              const Mut& dgate, const Mut& dup) {
  if (count == 0) return;
  by_number(dgate.dtype, [&]<class T>(T) {
    differentiate_all<Gate>(queue, count, elements<T>(dy), elements<T>(gate), elements<T>(up), elements<T>(dgate),
                            elements<T>(dup));
  });
}

}  // namespace

void swiglu(const Queue& queue, std::int64_t count, Const gate, Const up, Mut y) {
  forward<LogisticGate>(queue, count, gate, up, y);
}

void swiglu_backward(const Queue& queue, std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  backward<LogisticGate>(queue, count, dy, gate, up, dgate, dup);
}

void geglu(const Queue& queue, std::int64_t count, Const gate, Const up, Mut y) {
  forward<GeluGate>(queue, count, gate, up, y);
}

void geglu_backward(const Queue& queue, std::int64_t count, Const dy, Const gate, Const up, Mut dgate, Mut dup) {
  backward<GeluGate>(queue, count, dy, gate, up, dgate, dup);
}

}  // namespace foreshard::kernels::cuda
