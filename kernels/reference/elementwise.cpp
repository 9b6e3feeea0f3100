#include "base/random.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

bool kept(const Dropout& o, std::uint64_t element) {
  const std::uint32_t word = philox(o.key, o.stream, element / 4)[element % 4];
  return uniform(word) >= static_cast<double>(o.probability);
}

}  // namespace

template <class T>
void add(std::int64_t count, const T* a, const T* b, T* sum) {
  for (std::int64_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
}

template <class T>
void dropout(const Dropout& o, const T* x, T* y) {
  const T scale = static_cast<T>(1.0 / (1.0 - static_cast<double>(o.probability)));
  for (std::int64_t i = 0; i < o.count; ++i)
    y[i] = kept(o, o.first + static_cast<std::uint64_t>(i)) ? x[i] * scale : T{0};
}

template void add(std::int64_t, const float*, const float*, float*);
template void add(std::int64_t, const double*, const double*, double*);
template void dropout(const Dropout&, const float*, float*);
template void dropout(const Dropout&, const double*, double*);

}  // namespace foreshard::kernels::reference
