#include <algorithm>
#include <cmath>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T>
double log_sum_exp_of(const T* x, std::int64_t n) {
  double highest = static_cast<double>(x[0]), total = 0;
  for (std::int64_t j = 1; j < n; ++j) highest = std::max(highest, static_cast<double>(x[j]));
  for (std::int64_t j = 0; j < n; ++j) total += std::exp(static_cast<double>(x[j]) - highest);
  return highest + std::log(total);
}

template <class T>
void add_losses(const Rows& o, const T* logits, const std::int32_t* targets, double* loss, Computed<T>* log_sum_exp) {
  for (std::int64_t i = 0; i < o.rows; ++i) {
    const T* row = logits + i * o.cols;
    const double lse = log_sum_exp_of(row, o.cols);
    log_sum_exp[i] = static_cast<Computed<T>>(lse);
    if (targets[i] < 0) continue;
    loss[0] += lse - static_cast<double>(row[targets[i]]);
    loss[1] += 1;
  }
}

template <class T>
void differentiate(const Rows& o, float scale, const T* logits, const std::int32_t* targets,
                   const Computed<T>* log_sum_exp, T* dlogits) {
  using C = Computed<T>;
  for (std::int64_t i = 0; i < o.rows; ++i) {
    for (std::int64_t j = 0; j < o.cols; ++j) {
      const std::int64_t at = i * o.cols + j;
      const C p = static_cast<C>(std::exp(static_cast<double>(logits[at]) - static_cast<double>(log_sum_exp[i])));
      dlogits[at] = targets[i] < 0 ? T{} : static_cast<T>(C(scale) * (p - C(j == targets[i])));
    }
  }
}

}  // namespace

void cross_entropy(const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) {
  by_number(logits.dtype, [&]<class T>(T) {
    add_losses(o, as<T>(logits), as<std::int32_t>(targets), as<double>(loss), as<Computed<T>>(log_sum_exp));
  });
}

void cross_entropy_backward(const Rows& o, float scale, Const logits, Const targets, Const log_sum_exp, Mut dlogits) {
  by_number(dlogits.dtype, [&]<class T>(T) {
    differentiate(o, scale, as<T>(logits), as<std::int32_t>(targets), as<Computed<T>>(log_sum_exp), as<T>(dlogits));
  });
}

}  // namespace foreshard::kernels::reference
