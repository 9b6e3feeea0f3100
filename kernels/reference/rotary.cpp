#include <cmath>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T>
void turn(double angle, T x, T y, T& to_x, T& to_y) {
  const double c = std::cos(angle), s = std::sin(angle), u = static_cast<double>(x), v = static_cast<double>(y);
  to_x = static_cast<T>(u * c - v * s);
  to_y = static_cast<T>(v * c + u * s);
}

template <class T>
void turn_all(const Rotary& o, const T* x, T* y) {
  const std::int64_t half = o.width / 2;
  for (std::int64_t head = 0; head < o.rows * o.heads; ++head, x += o.width, y += o.width) {
    const auto position = static_cast<double>(head / o.heads % o.seq);
    for (std::int64_t j = 0; j < half; ++j) {
      const double angle = position * o.frequency(j);
      turn(o.back ? -angle : angle, x[j], x[j + half], y[j], y[j + half]);
    }
  }
}

}  // namespace

void rotary(const Rotary& o, Const x, Mut y) {
  by_number(y.dtype, [&]<class T>(T) { turn_all(o, as<T>(x), as<T>(y)); });
}

}  // namespace foreshard::kernels::reference
