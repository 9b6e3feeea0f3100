#include "kernels/cpu/exp.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

// 0.5·(1 + tanh u) = 1 / (1 + e^−2u) with u = √(2/π)·(x + 0.044715·x³).
constexpr float linear = 2 * 0.797884560802865356F, cubic = linear * 0.044715F;

Vec gate(Vec x) { return 1.0F / (1.0F + exp(-x * (linear + cubic * x * x))); }

Vec slope(Vec x) {
  const Vec s = gate(x);
  return s + x * s * (1.0F - s) * (linear + 3 * cubic * x * x);
}

template <class T>
void forward(std::int64_t count, const T* x, T* y) {
  share(count, grain_elements, [=](std::int64_t begin, std::int64_t end) {
    map(
        end - begin, y + begin, [](Vec v) { return v * gate(v); }, x + begin);
  });
}

template <class T>
void backward(std::int64_t count, const T* dy, const T* x, T* dx) {
  share(count, grain_elements, [=](std::int64_t begin, std::int64_t end) {
    map(
        end - begin, dx + begin, [](Vec d, Vec v) { return d * slope(v); }, dy + begin, x + begin);
  });
}

}  // namespace

void gelu(std::int64_t count, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { forward(count, as<T>(x), as<T>(y)); });
}

void gelu_backward(std::int64_t count, Const dy, Const x, Mut dx) {
  by_number(dx.dtype, [&]<class T>(T) { backward(count, as<T>(dy), as<T>(x), as<T>(dx)); });
}

}  // namespace foreshard::kernels::cpu
