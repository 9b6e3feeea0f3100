#include "kernels/cuda/update.hpp"

namespace foreshard::kernels::cuda {
namespace {

__host__ __device__ float rounded(double value) { return static_cast<float>(value); }

/// The moments, and the step rate·m/(√v·root_scale + ε), whose bias corrections are in `rate` and `root_scale`.
struct Moments {
  float beta1, rest1, beta2, rest2, epsilon, rate, root_scale;

  __host__ __device__ static Moments of(const Update& o) {
    const auto step = static_cast<double>(o.step);
    return {rounded(o.beta1),
            rounded(1 - o.beta1),
            rounded(o.beta2),
            rounded(1 - o.beta2),
            rounded(o.epsilon),
            rounded(o.learning_rate / (1 - pow(o.beta1, step))),
            rounded(1 / sqrt(1 - pow(o.beta2, step)))};
  }
  __device__ float step(float g, float& first, float& second) const {
    const float m = beta1 * first + rest1 * g, v = beta2 * second + rest2 * (g * g);
    first = m;
    second = v;
    return rate * (m / (sqrtf(v) * root_scale + epsilon));
  }
};

struct AdamW {
  static constexpr int states = 2;
  UpdateGradient gradient;
  Moments moments;
  float decay;

  __host__ __device__ static AdamW of(const Update& o) {
    return {UpdateGradient::of(o), Moments::of(o), rounded(o.learning_rate * o.weight_decay)};
  }
  __device__ void operator()(float grad, float& p, float& first, float& second) const {
    p -= decay * p + moments.step(gradient(grad), first, second);
  }
};

struct Adam {
  static constexpr int states = 2;
  UpdateGradient gradient;
  Moments moments;
  float decay;

  __host__ __device__ static Adam of(const Update& o) {
    return {UpdateGradient::of(o), Moments::of(o), rounded(o.weight_decay)};
  }
  __device__ void operator()(float grad, float& p, float& first, float& second) const {
    p -= moments.step(gradient(grad) + decay * p, first, second);
  }
};

}  // namespace

void adamw(const Queue& queue, const Update& o, const Const& grad, const Mut& parameter, const Mut& first,
           const Mut& second) {
  update_with<AdamW>(queue, o, grad, parameter, first, second);
}
void adamw(const Queue& queue, const PartList& o, const Const& grad, const Mut& parameter, const Mut& first,
           const Mut& second) {
  update_with<AdamW>(queue, o, grad, parameter, first, second);
}
void adam(const Queue& queue, const Update& o, const Const& grad, const Mut& parameter, const Mut& first,
          const Mut& second) {
  update_with<Adam>(queue, o, grad, parameter, first, second);
}
void adam(const Queue& queue, const PartList& o, const Const& grad, const Mut& parameter, const Mut& first,
          const Mut& second) {
  update_with<Adam>(queue, o, grad, parameter, first, second);
}

}  // namespace foreshard::kernels::cuda
