#include "kernels/cuda/update.hpp"

namespace foreshard::kernels::cuda {
namespace {

__host__ __device__ float rounded(double value) { return static_cast<float>(value); }

struct Lion {
  static constexpr int states = 1;
  UpdateGradient gradient;
  float beta1, rest1, beta2, rest2, decay, rate;

  __host__ __device__ static Lion of(const Update& o) {
    return {UpdateGradient::of(o),   rounded(o.beta1),     rounded(1 - o.beta1),
            rounded(o.beta2),        rounded(1 - o.beta2), rounded(o.learning_rate * o.weight_decay),
            rounded(o.learning_rate)};
  }
  __device__ float signed_rate(float x) const { return x > 0 ? rate : (x < 0 ? -rate : 0.0F); }
  __device__ void operator()(float grad, float& p, float& moment, float&) const {
    const float g = gradient(grad), m = moment;
    moment = beta2 * m + rest2 * g;
    p -= decay * p + signed_rate(beta1 * m + rest1 * g);
  }
};

}  // namespace

void lion(const Queue& queue, const Update& o, const Const& grad, const Mut& parameter, const Mut& moment) {
  update_with<Lion>(queue, o, grad, parameter, moment, {});
}
void lion(const Queue& queue, const PartList& o, const Const& grad, const Mut& parameter, const Mut& moment) {
  update_with<Lion>(queue, o, grad, parameter, moment, {});
}

}  // namespace foreshard::kernels::cuda
