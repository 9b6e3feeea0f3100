#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/exp.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

constexpr std::int64_t block_cols = 2048;  // small enough to be in the first-level cache for its second look

template <class T>
float max_of(std::int64_t n, const T* x) {
  Vec highest = broadcast(-std::numeric_limits<float>::infinity()), other = highest;
  std::int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    highest = max(load(x + j), highest);
    other = max(load(x + j + lanes), other);
  }
  float result = fold_max(max(highest, other));
  for (; j < n; ++j) result = std::max(result, static_cast<float>(x[j]));
  return result;
}

template <class T>
float sum_of_exp(std::int64_t n, const T* x, float shift) {
  const std::int64_t whole = n / lanes * lanes;
  const float total = sum(
      whole, [shift](Vec v) { return exp(v - shift); }, x);
  if (whole == n) return total;
  return total + fold_sum(exp(load_part(x + whole, n - whole, -std::numeric_limits<float>::infinity()) - shift));
}

/// log Σ exp of a row, read from memory once: blocks are summed on their own and rescaled when a later one is higher.
template <class T>
double log_sum_exp_of(std::int64_t n, const T* x) {
  float highest = -std::numeric_limits<float>::infinity();
  double total = 0;
  for (std::int64_t j = 0; j < n; j += block_cols) {
    const std::int64_t width = std::min(block_cols, n - j);
    const float block = max_of(width, x + j);
    if (!(block <= highest)) {
      if (total > 0) total *= std::exp(static_cast<double>(highest) - static_cast<double>(block));
      highest = block;
    }
    total += static_cast<double>(sum_of_exp(width, x + j, highest));
  }
  return static_cast<double>(highest) + std::log(total);
}

template <class T>
void add_losses(const Rows& o, const T* logits, const std::int32_t* targets, double* loss, float* log_sum_exp) {
  double* losses = thread_scratch().of<double>(static_cast<std::size_t>(o.rows));
  share(o.rows, grain_rows(8 * o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* row = logits + i * o.cols;
      const double lse = log_sum_exp_of(o.cols, row);
      log_sum_exp[i] = static_cast<float>(lse);
      losses[i] = targets[i] < 0 ? 0.0 : lse - static_cast<double>(row[targets[i]]);
    }
  });
  for (std::int64_t i = 0; i < o.rows; ++i) {
    loss[0] += losses[i];
    loss[1] += targets[i] < 0 ? 0 : 1;
  }
}

/// One row of dlogits, which may be logits. The target's is made in float, so that it is rounded once.
template <class T>
void differentiate_row(std::int64_t n, const T* logits, std::int32_t target, float lse, float scale, T* dlogits) {
  const float of_target = scale * (exp(broadcast(static_cast<float>(logits[target])) - lse)[0] - 1.0F);
  map(
      n, dlogits, [lse, scale](Vec v) { return scale * exp(v - lse); }, logits);
  dlogits[target] = static_cast<T>(of_target);
}

template <class T>
void differentiate(const Rows& o, float scale, const T* logits, const std::int32_t* targets, const float* log_sum_exp,
                   T* dlogits) {
  share(o.rows, grain_rows(8 * o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      T* row = dlogits + i * o.cols;
      if (targets[i] < 0)
        std::fill_n(row, o.cols, T{});
      else
        differentiate_row(o.cols, logits + i * o.cols, targets[i], log_sum_exp[i], scale, row);
    }
  });
}

}  // namespace

void cross_entropy(const Rows& o, Const logits, Const targets, Mut loss, Mut log_sum_exp) {
  by_number(logits.dtype, [&]<class T>(T) {
    add_losses(o, as<T>(logits), as<std::int32_t>(targets), as<double>(loss), as<float>(log_sum_exp));
  });
}

void cross_entropy_backward(const Rows& o, float scale, Const logits, Const targets, Const log_sum_exp, Mut dlogits) {
  by_number(dlogits.dtype, [&]<class T>(T) {
    differentiate(o, scale, as<T>(logits), as<std::int32_t>(targets), as<float>(log_sum_exp), as<T>(dlogits));
  });
}

}  // namespace foreshard::kernels::cpu
