#include "kernels/cpu/update.hpp"

namespace foreshard::kernels::cpu {
namespace {

struct Rule {
  explicit Rule(const Update& o)
      : gradient(o),
        beta1(rounded(o.beta1)),
        rest1(rounded(1 - o.beta1)),
        beta2(rounded(o.beta2)),
        rest2(rounded(1 - o.beta2)),
        decay(rounded(o.learning_rate * o.weight_decay)),
        rate(rounded(o.learning_rate)) {}
  static float rounded(double value) { return static_cast<float>(value); }
  float signed_rate(float x) const { return x > 0 ? rate : (x < 0 ? -rate : 0.0F); }

  UpdateGradient gradient;
  float beta1, rest1, beta2, rest2, decay, rate;
};

}  // namespace

void lion(const Update& o, Const grad, Mut parameter, Mut moment) {
  const auto move = [moments = as<float>(moment), rule = Rule(o)](std::int64_t i, auto grad_i, float p) {
    const float g = rule.gradient(grad_i), m = moments[i];
    moments[i] = rule.beta2 * m + rule.rest2 * g;
    return p - (rule.decay * p + rule.signed_rate(rule.beta1 * m + rule.rest1 * g));
  };
  update_elements(o, grad, parameter, move);
}

}  // namespace foreshard::kernels::cpu
