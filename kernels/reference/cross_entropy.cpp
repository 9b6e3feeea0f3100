#include <algorithm>
#include <cmath>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T>
double log_sum_exp_of(const T* x, std::int64_t n) {
  const double highest = static_cast<double>(*std::max_element(x, x + n));
  double total = 0;
  for (std::int64_t j = 0; j < n; ++j) total += std::exp(static_cast<double>(x[j]) - highest);
  return highest + std::log(total);
}

}  // namespace

template <class T>
void cross_entropy(const Rows& o, const T* logits, const std::int32_t* targets, double* loss, T* log_sum_exp) {
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const T* row = logits + i * o.cols;
    const double lse = log_sum_exp_of(row, o.cols);
    log_sum_exp[i] = static_cast<T>(lse);
    if (targets[i] < 0) continue;
    loss[0] += lse - static_cast<double>(row[targets[i]]);
    loss[1] += 1;
  }
}

template <class T>
void cross_entropy_backward(const Rows& o, const T* logits, const std::int32_t* targets, const T* log_sum_exp,
                            T* dlogits) {
  for (std::int64_t i = 0; i < o.rows; ++i) {
    for (std::int64_t j = 0; j < o.cols; ++j) {
      const std::int64_t at = i * o.cols + j;
      const T p = static_cast<T>(std::exp(static_cast<double>(logits[at]) - static_cast<double>(log_sum_exp[i])));
      dlogits[at] = targets[i] < 0 ? T{0} : p - T(j == targets[i]);
    }
  }
}

template void cross_entropy(const Rows&, const float*, const std::int32_t*, double*, float*);
template void cross_entropy(const Rows&, const double*, const std::int32_t*, double*, double*);
template void cross_entropy_backward(const Rows&, const float*, const std::int32_t*, const float*, float*);
template void cross_entropy_backward(const Rows&, const double*, const std::int32_t*, const double*, double*);

}  // namespace foreshard::kernels::reference
