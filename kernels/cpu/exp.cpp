#include "kernels/cpu/exp.hpp"

namespace foreshard::kernels::cpu {

void exp(std::int64_t count, const float* x, float* y) {
  map(
      count, y, [](Vec v) { return exp(v); }, x);
}

}  // namespace foreshard::kernels::cpu
