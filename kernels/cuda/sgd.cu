#include "kernels/cuda/update.hpp"

namespace foreshard::kernels::cuda {
namespace {

struct Plain {
  static constexpr int states = 0;
  UpdateGradient gradient;
  float decay, rate;

  __host__ __device__ static Plain of(const Update& o) {
    return {UpdateGradient::of(o), static_cast<float>(o.weight_decay), static_cast<float>(o.learning_rate)};
  }
  __device__ void operator()(float grad, float& p, float&, float&) const { p -= rate * (gradient(grad) + decay * p); }
};

struct Momentum {
  static constexpr int states = 1;
  UpdateGradient gradient;
  float decay, rate, momentum;
  bool nesterov;

  __host__ __device__ static Momentum of(const Update& o) {
    return {UpdateGradient::of(o), static_cast<float>(o.weight_decay), static_cast<float>(o.learning_rate),
            static_cast<float>(o.momentum), o.nesterov};
  }
  __device__ void operator()(float grad, float& p, float& velocity, float&) const {
    const float g = gradient(grad) + decay * p, v = momentum * velocity + g;
    velocity = v;
    p -= rate * (nesterov ? g + momentum * v : v);
  }
};

}  // namespace

void sgd(const Queue& queue, const Update& o, const Const& grad, const Mut& parameter) {
  update_with<Plain>(queue, o, grad, parameter, {}, {});
}
void sgd(const Queue& queue, const PartList& o, const Const& grad, const Mut& parameter) {
  update_with<Plain>(queue, o, grad, parameter, {}, {});
}
void momentum(const Queue& queue, const Update& o, const Const& grad, const Mut& parameter, const Mut& velocity) {
  update_with<Momentum>(queue, o, grad, parameter, velocity, {});
}
void momentum(const Queue& queue, const PartList& o, const Const& grad, const Mut& parameter, const Mut& velocity) {
  update_with<Momentum>(queue, o, grad, parameter, velocity, {});
}

}  // namespace foreshard::kernels::cuda
