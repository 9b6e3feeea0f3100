#include <cmath>

#include "kernels/reference/kernels.hpp"
#include "kernels/reference/update.hpp"

namespace foreshard::kernels::reference {
namespace {

/// Updates the moments by g; m̂ / (√v̂ + ε).
template <class State>
double direction(const Update& o, double g, State& first_moment, State& second_moment) {
  const auto step = static_cast<double>(o.step);
  const double m = o.beta1 * static_cast<double>(first_moment) + (1 - o.beta1) * g;
  const double v = o.beta2 * static_cast<double>(second_moment) + (1 - o.beta2) * g * g;
  first_moment = static_cast<State>(m);
  second_moment = static_cast<State>(v);
  return m / (1 - std::pow(o.beta1, step)) / (std::sqrt(v / (1 - std::pow(o.beta2, step))) + o.epsilon);
}

template <class Grad, class T, class State>
void decoupled(const Update& o, const Grad* grad, T* parameter, State* first_moment, State* second_moment) {
  for (std::int64_t i = 0; i < o.count; ++i) {
    const double p = static_cast<double>(parameter[i]);
    const double move = direction(o, gradient_of(o, grad[i]), first_moment[i], second_moment[i]);
    parameter[i] = stored<T>(o, i, p - o.learning_rate * (o.weight_decay * p + move));
  }
}

template <class Grad, class T, class State>
void coupled(const Update& o, const Grad* grad, T* parameter, State* first_moment, State* second_moment) {
  for (std::int64_t i = 0; i < o.count; ++i) {
    const double p = static_cast<double>(parameter[i]), g = gradient_of(o, grad[i]) + o.weight_decay * p;
    parameter[i] = stored<T>(o, i, p - o.learning_rate * direction(o, g, first_moment[i], second_moment[i]));
  }
}

}  // namespace

void adamw(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) {
  by_update_types(parameter, grad, [&]<class T>(T, const auto* g) {
    decoupled(o, g, as<T>(parameter), as<Computed<T>>(first_moment), as<Computed<T>>(second_moment));
  });
}

void adam(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) {
  by_update_types(parameter, grad, [&]<class T>(T, const auto* g) {
    coupled(o, g, as<T>(parameter), as<Computed<T>>(first_moment), as<Computed<T>>(second_moment));
  });
}

}  // namespace foreshard::kernels::reference
