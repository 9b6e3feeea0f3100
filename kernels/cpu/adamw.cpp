#include <cmath>

#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

struct Rule {
  float grad_scale, beta1, rest1, beta2, rest2, decay, rate, root_scale, epsilon;

  template <class Grad>
  void update(std::int64_t count, const Grad* grad, float* parameter, float* first, float* second) const {
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
      const float g = static_cast<float>(grad[i]) * grad_scale;
      const float m = beta1 * first[i] + rest1 * g, v = beta2 * second[i] + rest2 * (g * g);
      first[i] = m;
      second[i] = v;
      parameter[i] -= decay * parameter[i] + rate * (m / (std::sqrt(v) * root_scale + epsilon));
    }
  }
};

Rule rule_of(const AdamW& o) {
  const double correction1 = 1 - std::pow(o.beta1, static_cast<double>(o.step));
  const double correction2 = 1 - std::pow(o.beta2, static_cast<double>(o.step));
  const auto f = [](double value) { return static_cast<float>(value); };
  return {f(o.grad_scale),
          f(o.beta1),
          f(1 - o.beta1),
          f(o.beta2),
          f(1 - o.beta2),
          f(o.learning_rate * o.weight_decay),
          f(o.learning_rate / correction1),
          f(1 / std::sqrt(correction2)),
          f(o.epsilon)};
}

template <class Grad>
void update(const AdamW& o, const Grad* grad, float* parameter, float* first_moment, float* second_moment) {
  share(o.count, grain_elements, [=, rule = rule_of(o)](std::int64_t begin, std::int64_t end) {
    rule.update(end - begin, grad + begin, parameter + begin, first_moment + begin, second_moment + begin);
  });
}

}  // namespace

void adamw(const AdamW& o, Const grad, Mut parameter, Mut first_moment, Mut second_moment) {
  by_number(grad.dtype, [&]<class Grad>(Grad) {
    update(o, as<Grad>(grad), as<float>(parameter), as<float>(first_moment), as<float>(second_moment));
  });
}

}  // namespace foreshard::kernels::cpu
