#include "kernels/cpu/exp.hpp"

namespace foreshard::kernels::cpu {

void exp(std::int64_t count, const float* x, float* y) {
  map(
      count, y, [](Vec v) { return exp(v); }, x);
}

void exp_for_bf16(std::int64_t count, const float* x, float* y) {
  map(
      count, y, [](Vec v) { return exp_for_bf16(v); }, x);
}

}  // namespace foreshard::kernels::cpu
