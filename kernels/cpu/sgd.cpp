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

void plain(const Update& o, const Const& grad, const Mut& parameter) {
  update_elements(o, grad, parameter,
                  [rule = Rule(o)](std::int64_t, auto g, float p) { return p - rule.rate * rule.decayed(g, p); });
}

template <bool nesterov>
void with_momentum(const Update& o, const Const& grad, const Mut& parameter, float* velocity) {
  update_elements(o, grad, parameter, [velocity, rule = Rule(o)](std::int64_t i, auto grad_i, float p) {
    const float g = rule.decayed(grad_i, p), v = rule.momentum * velocity[i] + g;
    velocity[i] = v;
    return p - rule.rate * (nesterov ? g + rule.momentum * v : v);
  });
}

}  // namespace

void sgd(const Update& o, Const grad, Mut parameter, Mut velocity) {
  float* v = as<float>(velocity);
  if (!v) return plain(o, grad, parameter);
  o.nesterov ? with_momentum<true>(o, grad, parameter, v) : with_momentum<false>(o, grad, parameter, v);
}

}  // namespace foreshard::kernels::cpu
