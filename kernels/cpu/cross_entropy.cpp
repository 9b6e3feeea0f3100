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

float max_of(std::int64_t n, const float* x) {
  Vec highest = broadcast(-std::numeric_limits<float>::infinity()), other = highest;
  std::int64_t j = 0;
  for (; j + 2 * lanes <= n; j += 2 * lanes) {
    highest = max(load(x + j), highest);
    other = max(load(x + j + lanes), other);
  }
  float result = fold_max(max(highest, other));
  for (; j < n; ++j) result = std::max(result, x[j]);
  return result;
}

float sum_of_exp(std::int64_t n, const float* x, float shift) {
  const std::int64_t whole = n / lanes * lanes;
  const float total = sum(
      whole, [shift](Vec v) { return exp(v - shift); }, x);
  if (whole == n) return total;
  return total + fold_sum(exp(load_part(x + whole, n - whole, -std::numeric_limits<float>::infinity()) - shift));
}

/// log Σ exp of a row, read from memory once: blocks are summed on their own and rescaled when a later one is higher.
double log_sum_exp_of(std::int64_t n, const float* x) {
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

}  // namespace

void cross_entropy(const Rows& o, const float* logits, const std::int32_t* targets, double* loss, float* log_sum_exp) {
  double* losses = thread_scratch().of<double>(static_cast<std::size_t>(o.rows));
  share(o.rows, grain_rows(8 * o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* row = logits + i * o.cols;
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

void cross_entropy_backward(const Rows& o, const float* logits, const std::int32_t* targets, const float* log_sum_exp,
                            float* dlogits) {
  share(o.rows, grain_rows(8 * o.cols), [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* row = dlogits + i * o.cols;
      if (targets[i] < 0) {
        std::fill_n(row, o.cols, 0.0F);
        continue;
      }
      map(
          o.cols, row, [lse = log_sum_exp[i]](Vec v) { return exp(v - lse); }, logits + i * o.cols);
      row[targets[i]] -= 1.0F;
    }
  });
}

}  // namespace foreshard::kernels::cpu
