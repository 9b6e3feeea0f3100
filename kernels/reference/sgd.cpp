#include "kernels/reference/kernels.hpp"
#include "kernels/reference/update.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class Grad, class T, class State>
void update(const Update& o, const Grad* grad, T* parameter, State* velocity) {
  for (std::int64_t i = 0; i < o.count; ++i) {
    const double p = static_cast<double>(parameter[i]), g = gradient_of(o, grad[i]) + o.weight_decay * p;
    double move = g;
    if (velocity) {
      const double v = o.momentum * static_cast<double>(velocity[i]) + g;
      velocity[i] = static_cast<State>(v);
      move = o.nesterov ? g + o.momentum * v : v;
    }
    parameter[i] = stored<T>(o, i, p - o.learning_rate * move);
  }
}

}  // namespace

void sgd(const Update& o, Const grad, Mut parameter, Mut velocity) {
  by_update_types(parameter, grad,
                  [&]<class T>(T, const auto* g) { update(o, g, as<T>(parameter), as<Computed<T>>(velocity)); });
}

}  // namespace foreshard::kernels::reference
