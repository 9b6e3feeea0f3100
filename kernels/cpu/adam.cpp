#include <cmath>

#include "kernels/cpu/update.hpp"

namespace foreshard::kernels::cpu {
namespace {

float rounded(double value) { return static_cast<float>(value); }

/// The moments, and the step rate·m/(√v·root_scale + ε), whose bias corrections are in `rate` and `root_scale`.
struct Moments {
  explicit Moments(const Update& o)
      : beta1(rounded(o.beta1)),
        rest1(rounded(1 - o.beta1)),
        beta2(rounded(o.beta2)),
        rest2(rounded(1 - o.beta2)),
        epsilon(rounded(o.epsilon)) {
    const auto step = static_cast<double>(o.step);
    rate = rounded(o.learning_rate / (1 - std::pow(o.beta1, step)));
    root_scale = rounded(1 / std::sqrt(1 - std::pow(o.beta2, step)));
  }
  float step(float g, float& first, float& second) const {
    const float m = beta1 * first + rest1 * g, v = beta2 * second + rest2 * (g * g);
    first = m;
    second = v;
    return rate * (m / (std::sqrt(v) * root_scale + epsilon));
  }
  float beta1, rest1, beta2, rest2, epsilon, rate, root_scale;
};

}  // namespace

void adamw(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) {
  float *first = as<float>(first_moment), *second = as<float>(second_moment);
  const float decay = rounded(o.learning_rate * o.weight_decay);
  const auto move = [=, gradient = UpdateGradient(o), moments = Moments(o)](std::int64_t i, auto g, float p) {
    return p - (decay * p + moments.step(gradient(g), first[i], second[i]));
  };
  update_elements(o, grad, parameter, move);
}

void adam(const Update& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) {
  float *first = as<float>(first_moment), *second = as<float>(second_moment);
  const float decay = rounded(o.weight_decay);
  const auto move = [=, gradient = UpdateGradient(o), moments = Moments(o)](std::int64_t i, auto g, float p) {
    return p - moments.step(gradient(g) + decay * p, first[i], second[i]);
  };
  update_elements(o, grad, parameter, move);
}

}  // namespace foreshard::kernels::cpu
