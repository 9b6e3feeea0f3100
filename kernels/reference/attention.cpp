#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

/// One head of one sequence: token i's query is at q + i·stride, and so on.
template <class T>
struct Head {
  const T *q, *k, *v;
  std::int64_t stride, width;

  double score(std::int64_t i, std::int64_t j) const {
    double sum = 0;
    for (std::int64_t d = 0; d < width; ++d) {
      sum += static_cast<double>(q[i * stride + d]) * static_cast<double>(k[j * stride + d]);
    }
    return sum / std::sqrt(static_cast<double>(width));
  }
};

/// Calls f(head, offset of its queries in qkv, offset in y, offset in log_sum_exp) for every head of every sequence.
template <class T, class F>
void for_heads(const Attention& o, const T* qkv, F f) {
  const std::int64_t inner = o.heads * o.width;
  for (std::int64_t b = 0; b < o.batch; ++b) {
    for (std::int64_t h = 0; h < o.heads; ++h) {
      const std::int64_t at = b * o.seq * 3 * inner + h * o.width;
      const Head<T> head{qkv + at, qkv + at + inner, qkv + at + 2 * inner, 3 * inner, o.width};
      f(head, at, b * o.seq * inner + h * o.width, (b * o.heads + h) * o.seq);
    }
  }
}

/// y of token i is Σ_j≤i p_j·v_j with p the softmax of its scores; returns the scores' log Σ exp.
template <class T>
double attend(const Head<T>& head, std::int64_t i, T* y) {
  std::vector<double> p(static_cast<std::size_t>(i + 1));
  for (std::int64_t j = 0; j <= i; ++j) p[j] = head.score(i, j);
  const double highest = *std::ranges::max_element(p);
  double total = 0;
  for (double& value : p) total += value = std::exp(value - highest);
  for (std::int64_t d = 0; d < head.width; ++d) {
    double sum = 0;
    for (std::int64_t j = 0; j <= i; ++j) sum += p[j] * static_cast<double>(head.v[j * head.stride + d]);
    y[d] = static_cast<T>(sum / total);
  }
  return highest + std::log(total);
}

template <class T>
double dot(const T* a, const T* b, std::int64_t n) {
  double sum = 0;
  for (std::int64_t d = 0; d < n; ++d) sum += static_cast<double>(a[d]) * static_cast<double>(b[d]);
  return sum;
}

template <class T>
void forward(const Attention& o, const T* qkv, T* y, Computed<T>* log_sum_exp) {
  for_heads(o, qkv, [&](const Head<T>& head, std::int64_t, std::int64_t y_at, std::int64_t lse_at) {
    for (std::int64_t i = 0; i < o.seq; ++i) {
      log_sum_exp[lse_at + i] = static_cast<Computed<T>>(attend(head, i, y + y_at + i * o.heads * o.width));
    }
  });
}

template <class T>
void backward(const Attention& o, const T* dy, const T* qkv, const T* y, const Computed<T>* log_sum_exp, T* dqkv) {
  const std::int64_t inner = o.heads * o.width;
  const double scale = 1 / std::sqrt(static_cast<double>(o.width));
  std::vector<double> sums(static_cast<std::size_t>(o.batch * o.seq * 3 * inner));
  for_heads(o, qkv, [&](const Head<T>& head, std::int64_t q_at, std::int64_t y_at, std::int64_t lse_at) {
    double *dq = sums.data() + q_at, *dk = dq + inner, *dv = dk + inner;
    for (std::int64_t i = 0; i < o.seq; ++i) {
      const T* dyi = dy + y_at + i * inner;
      const double delta = dot(dyi, y + y_at + i * inner, o.width);
      for (std::int64_t j = 0; j <= i; ++j) {
        const double p = std::exp(head.score(i, j) - static_cast<double>(log_sum_exp[lse_at + i]));
        const double ds = p * (dot(dyi, head.v + j * head.stride, o.width) - delta) * scale;
        for (std::int64_t d = 0; d < o.width; ++d) {
          dq[i * head.stride + d] += ds * static_cast<double>(head.k[j * head.stride + d]);
          dk[j * head.stride + d] += ds * static_cast<double>(head.q[i * head.stride + d]);
          dv[j * head.stride + d] += p * static_cast<double>(dyi[d]);
        }
      }
    }
  });
  std::ranges::transform(sums, dqkv, [](double sum) { return static_cast<T>(sum); });
}

}  // namespace

void attention(const Attention& o, Const qkv, Mut y, Mut log_sum_exp) {
  by_number(y.dtype, [&]<class T>(T) { forward(o, as<T>(qkv), as<T>(y), as<Computed<T>>(log_sum_exp)); });
}

void attention_backward(const Attention& o, Const dy, Const qkv, Const y, Const log_sum_exp, Mut dqkv) {
  by_number(dqkv.dtype, [&]<class T>(T) {
    backward(o, as<T>(dy), as<T>(qkv), as<T>(y), as<Computed<T>>(log_sum_exp), as<T>(dqkv));
  });
}

}  // namespace foreshard::kernels::reference
