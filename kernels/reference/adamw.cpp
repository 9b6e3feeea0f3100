#include <cmath>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class Grad, class T>
void update(const AdamW& o, const Grad* grad, T* parameter, T* first_moment, T* second_moment) {
  const double correction1 = 1 - std::pow(o.beta1, static_cast<double>(o.step));
  const double correction2 = 1 - std::pow(o.beta2, static_cast<double>(o.step));
  for (std::int64_t i = 0; i < o.count; ++i) {
    const double g = static_cast<double>(grad[i]) * o.grad_scale, p = static_cast<double>(parameter[i]);
    const double m = o.beta1 * static_cast<double>(first_moment[i]) + (1 - o.beta1) * g;
    const double v = o.beta2 * static_cast<double>(second_moment[i]) + (1 - o.beta2) * g * g;
    const double direction = (m / correction1) / (std::sqrt(v / correction2) + o.epsilon);
    first_moment[i] = static_cast<T>(m);
    second_moment[i] = static_cast<T>(v);
    parameter[i] = static_cast<T>(p - o.learning_rate * (o.weight_decay * p + direction));
  }
}

}  // namespace

void adamw(const AdamW& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) {
  by_type<float, double>(parameter.dtype, [&]<class T>(T) {
    by_type<T, BFloat16, Float16>(grad.dtype, [&]<class Grad>(Grad) {
      update(o, as<Grad>(grad), as<T>(parameter), as<T>(first_moment), as<T>(second_moment));
    });
  });
}

}  // namespace foreshard::kernels::reference
