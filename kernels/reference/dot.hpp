#pragma once
#include <cstdint>

namespace foreshard::kernels::reference {

/// Σ a[d]·b[d] over n elements, in double.
template <class T>
double dot(const T* a, const T* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t d = 0; d < n; ++d) sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
  return sum;
}

}  // namespace foreshard::kernels::reference
