#include "kernels/reference/kernels.hpp"
#include "kernels/reference/update.hpp"

namespace foreshard::kernels::reference {
namespace {

double sign(double x) { return static_cast<double>(x > 0) - static_cast<double>(x < 0); }

template <class Grad, class T, class State>
void update(const Update& o, const Grad* grad, T* parameter, State* moment) {
  for (std::int64_t i = 0; i < o.count; ++i) {
    const double g = gradient_of(o, grad[i]), p = static_cast<double>(parameter[i]), m = static_cast<double>(moment[i]);
    const double move = sign(o.beta1 * m + (1 - o.beta1) * g);
    moment[i] = static_cast<State>(o.beta2 * m + (1 - o.beta2) * g);
    parameter[i] = stored<T>(o, i, p - o.learning_rate * (o.weight_decay * p + move));
  }
}

}  // namespace

void lion(const Update& o, Const grad, Mut parameter, Mut moment) {
  by_update_types(parameter, grad,
                  [&]<class T>(T, const auto* g) { update(o, g, as<T>(parameter), as<Computed<T>>(moment)); });
}

}  // namespace foreshard::kernels::reference
