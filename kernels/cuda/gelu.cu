// Bound by memory: each operand is read and each result written once.
#include "kernels/cuda/gelu.hpp"

#include <numbers>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/map.hpp"

namespace foreshard::kernels::cuda {
namespace {

/// x times the normal distribution's probability below it.
struct ExactGate {
  static __device__ float below(float x) { return 0.5F * erfcf(-x * (1 / std::numbers::sqrt2_v<float>)); }
  static __device__ float density(float x) { return 0.398942280401432678F * expf(-0.5F * x * x); }
  static __device__ float value(float x) { return x * below(x); }
  static __device__ float slope(float x) { return below(x) + x * density(x); }
};

template <class Gate>
struct Value {
  __device__ float operator()(float x) const { return Gate::value(x); }
};
template <class Gate>
struct Gradient {
  __device__ float operator()(float dy, float x) const { return dy * Gate::slope(x); }
};

template <class Gate>
void forward(const Queue& queue, std::int64_t count, const Const& x, const Mut& y) {
  by_number(y.dtype, [&]<class T>(T) { map(queue, count, Value<Gate>{}, elements<T>(y), elements<T>(x)); });
}

template <class Gate>
void backward(const Queue& queue, std::int64_t count, const Const& dy, const Const& x, const Mut& dx) {
  by_number(dx.dtype,
            [&]<class T>(T) { map(queue, count, Gradient<Gate>{}, elements<T>(dx), elements<T>(dy), elements<T>(x)); });
}

}  // namespace

void gelu(const Queue& queue, std::int64_t count, Const x, Mut y) { forward<GeluGate>(queue, count, x, y); }

void gelu_backward(const Queue& queue, std::int64_t count, Const dy, Const x, Mut dx) {
  backward<GeluGate>(queue, count, dy, x, dx);
}

void gelu_exact(const Queue& queue, std::int64_t count, Const x, Mut y) { forward<ExactGate>(queue, count, x, y); }

void gelu_exact_backward(const Queue& queue, std::int64_t count, Const dy, Const x, Mut dx) {
  backward<ExactGate>(queue, count, dy, x, dx);
}

}  // namespace foreshard::kernels::cuda
