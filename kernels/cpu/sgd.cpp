#include "kernels/cpu/update.hpp"

namespace foreshard::kernels::cpu {
namespace {

struct Rule {
  explicit Rule(const Update& o)
      : gradient(o),
        decay(static_cast<float>(o.weight_decay)),
        momentum(static_cast<float>(o.momentum)),
        rate(static_cast<float>(o.learning_rate)) {}
  template <class Grad>
  float decayed(Grad grad, float parameter) const {
    return gradient(grad) + decay * parameter;
  }

  UpdateGradient gradient;
  float decay, momentum, rate;
};

void plain(const Update& o, const Const& grad, float* p) {
  update_elements(o.count, grad,
                  [p, rule = Rule(o)](std::int64_t i, auto g) { p[i] -= rule.rate * rule.decayed(g, p[i]); });
}

template <bool nesterov>
void with_momentum(const Update& o, const Const& grad, float* p, float* velocity) {
  update_elements(o.count, grad, [p, velocity, rule = Rule(o)](std::int64_t i, auto grad_i) {
    const float g = rule.decayed(grad_i, p[i]), v = rule.momentum * velocity[i] + g;
    velocity[i] = v;
    p[i] -= rule.rate * (nesterov ? g + rule.momentum * v : v);
  });
}

}  // namespace

void sgd(const Update& o, Const grad, Mut parameter, Mut velocity) {
  float *p = as<float>(parameter), *v = as<float>(velocity);
  if (!v) return plain(o, grad, p);
  o.nesterov ? with_momentum<true>(o, grad, p, v) : with_momentum<false>(o, grad, p, v);
}

}  // namespace foreshard::kernels::cpu
