// Bound by memory: each operand is read and each result written once.
#include <numbers>

#include "kernels/cuda/kernels.hpp"
#include "kernels/cuda/map.hpp"

namespace foreshard::kernels::cuda {
namespace {

// 0.5·(1 + tanh u) = 1 / (1 + e^−2u) with u = √(2/π)·(x + 0.044715·x³).
constexpr float linear = 2 * 0.797884560802865356F, cubic = linear * 0.044715F;

__device__ float gate(float x) { return 1.0F / (1.0F + expf(-x * (linear + cubic * x * x))); }

/// The normal distribution's probability below x, and its density there.
__device__ float below(float x) { return 0.5F * erfcf(-x * (1 / std::numbers::sqrt2_v<float>)); }
__device__ float density(float x) { return 0.398942280401432678F * expf(-0.5F * x * x); }

struct Gelu {
  __device__ float operator()(float x) const { return x * gate(x); }
};
struct GeluBackward {
  __device__ float operator()(float dy, float x) const {
    const float s = gate(x);
    return dy * (s + (s < 1 && s > 0 ? x * s * (1.0F - s) * (linear + 3 * cubic * x * x) : 0.0F));
  }
};
struct Exact {
  __device__ float operator()(float x) const { return x * below(x); }
};
struct ExactBackward {
  __device__ float operator()(float dy, float x) const { return dy * (below(x) + x * density(x)); }
};

template <class F>
void forward(const Queue& queue, std::int64_t count, const Const& x, const Mut& y, F f) {
  by_number(y.dtype, [&]<class T>(T) { map(queue, count, f, elements<T>(y), elements<T>(x)); });
}

template <class F>
void backward(const Queue& queue, std::int64_t count, const Const& dy, const Const& x, const Mut& dx, F f) {
  by_number(dx.dtype, [&]<class T>(T) { map(queue, count, f, elements<T>(dx), elements<T>(dy), elements<T>(x)); });
}

}  // namespace

void gelu(const Queue& queue, std::int64_t count, Const x, Mut y) { forward(queue, count, x, y, Gelu{}); }

void gelu_backward(const Queue& queue, std::int64_t count, Const dy, Const x, Mut dx) {
  backward(queue, count, dy, x, dx, GeluBackward{});
}

void gelu_exact(const Queue& queue, std::int64_t count, Const x, Mut y) { forward(queue, count, x, y, Exact{}); }

void gelu_exact_backward(const Queue& queue, std::int64_t count, Const dy, Const x, Mut dx) {
  backward(queue, count, dy, x, dx, ExactBackward{});
}

}  // namespace foreshard::kernels::cuda
