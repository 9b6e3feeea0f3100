#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/qkv.hpp"
#include "kernels/reference/dot.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

/// What attention reads: all of it.
template <class T>
struct Inputs {
  Qkv<const T> qkv;
  const T* bias;
};

/// One head of one sequence; its rows of y, and of log_sum_exp; its biases, by distance.
template <class T>
struct Head {
  const Attention& o;
  Qkv<const T> in;
  const T* bias;
  std::int64_t width;
  double scale, slope;
  std::int64_t y_at, lse_at, bias_at;

  Head(const Attention& shape, const Inputs<T>& all, std::int64_t sequence, std::int64_t head)
      : o(shape),
        in(head_of(o, all.qkv, sequence, head)),
        bias(all.bias),
        width(o.width),
        scale(o.scale()),
        slope(o.slope(head)),
        y_at((sequence * o.seq * o.heads + head) * o.width),
        lse_at((sequence * o.heads + head) * o.seq),
        bias_at(head * o.distances() + o.seq - 1) {}

  double score(std::int64_t i, std::int64_t j) const {
    const double added = bias ? static_cast<double>(bias[bias_at + j - i]) : slope * static_cast<double>(j - i);
    return dot(in.q + i * in.q_stride, in.k + j * in.kv_stride, width) * scale + added;
  }
};

/// Calls f(sequence, head) for every head of every sequence.
template <class F>
void for_heads(const Attention& o, F f) {
  for (std::int64_t sequence = 0; sequence < o.batch; ++sequence)
    for (std::int64_t head = 0; head < o.heads; ++head) f(sequence, head);
}

/// y of token i is Σ_j p_j·v_j over the tokens that it sees, with p the softmax of its scores; returns the scores' log
/// Σ exp.
template <class T>
double attend(const Head<T>& head, std::int64_t i, T* y) {
  const std::int64_t first = head.o.first_seen_by(i), seen = head.o.seen_by(i) - first;
  std::vector<double> p(static_cast<std::size_t>(seen));
  for (std::int64_t j = 0; j < seen; ++j) p[j] = head.score(i, first + j);
  const double highest = *std::ranges::max_element(p);
  double total = 0;
  for (double& value : p) total += value = std::exp(value - highest);
  for (std::int64_t d = 0; d < head.width; ++d) {
    double sum = 0;
    for (std::int64_t j = 0; j < seen; ++j)
      sum += p[j] * static_cast<double>(head.in.v[(first + j) * head.in.kv_stride + d]);
    y[d] = static_cast<T>(sum / total);
  }
  return highest + std::log(total);
}

template <class T>
void forward(const Attention& o, const Inputs<T>& in, T* y, Computed<T>* log_sum_exp) {
  for_heads(o, [&](std::int64_t sequence, std::int64_t h) {
    const Head<T> head(o, in, sequence, h);
    for (std::int64_t i = 0; i < o.seq; ++i) {
      const double lse = attend(head, i, y + head.y_at + i * o.heads * o.width);
      log_sum_exp[head.lse_at + i] = static_cast<Computed<T>>(lse);
    }
  });
}

/// Adds what token i of a head contributes to the sums of its gradients.
template <class T>
void differentiate(const Head<T>& head, std::int64_t i, const T* dy, const T* y, double lse, const Qkv<double>& sums,
                   std::vector<double>& dbias) {
  const double delta = dot(dy, y, head.width);
  for (std::int64_t j = head.o.first_seen_by(i); j < head.o.seen_by(i); ++j) {
    const double p = std::exp(head.score(i, j) - lse);
    const double dscore = p * (dot(dy, head.in.v + j * head.in.kv_stride, head.width) - delta);
    const double ds = dscore * head.scale;
    dbias[head.bias_at + j - i] += dscore;
    for (std::int64_t d = 0; d < head.width; ++d) {
      sums.q[i * sums.q_stride + d] += ds * static_cast<double>(head.in.k[j * head.in.kv_stride + d]);
      sums.k[j * sums.kv_stride + d] += ds * static_cast<double>(head.in.q[i * head.in.q_stride + d]);
      sums.v[j * sums.kv_stride + d] += p * static_cast<double>(dy[d]);
    }
  }
}

template <class T>
void write(std::int64_t rows, std::int64_t cols, const std::vector<double>& sums, std::int64_t stride, T* to) {
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t d = 0; d < cols; ++d) to[r * stride + d] = static_cast<T>(sums[r * cols + d]);
}

template <class T>
void backward(const Attention& o, const T* dy, const Inputs<T>& in, const T* y, const Computed<T>* log_sum_exp,
              const Qkv<T>& grads, T* dbias) {
  const std::int64_t rows = o.batch * o.seq, inner = o.heads * o.width, key_width = o.keys() * o.width;
  std::vector<double> dq(rows * inner), dk(rows * key_width), dv(rows * key_width), sum_bias(o.heads * o.distances());
  const Qkv<double> sums{dq.data(), dk.data(), dv.data(), inner, key_width};
  for_heads(o, [&](std::int64_t sequence, std::int64_t h) {
    const Head<T> head(o, in, sequence, h);
    for (std::int64_t i = 0; i < o.seq; ++i) {
      const std::int64_t at = head.y_at + i * inner;
      differentiate(head, i, dy + at, y + at, static_cast<double>(log_sum_exp[head.lse_at + i]),
                    head_of(o, sums, sequence, h), sum_bias);
    }
  });
  write(rows, inner, dq, grads.q_stride, grads.q);
  write(rows, key_width, dk, grads.kv_stride, grads.k);
  write(rows, key_width, dv, grads.kv_stride, grads.v);
  if (dbias) write(o.heads, o.distances(), sum_bias, o.distances(), dbias);
}

}  // namespace

void attention(const Attention& o, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) {
  by_number(y.dtype, [&]<class T>(T) {
    forward<T>(o, {qkv_of<T>(o, q, k, v), as<T>(bias)}, as<T>(y), as<Computed<T>>(log_sum_exp));
  });
}

void attention_backward(const Attention& o, Const dy, Const q, Const k, Const v, Const bias, Const y, Const log_sum_exp,
                        Mut dq, Mut dk, Mut dv, Mut dbias) {
  by_number(dq.dtype, [&]<class T>(T) {
    backward<T>(o, as<T>(dy), {qkv_of<T>(o, q, k, v), as<T>(bias)}, as<T>(y), as<Computed<T>>(log_sum_exp),
                qkv_of<T>(o, dq, dk, dv), as<T>(dbias));
  });
}

}  // namespace foreshard::kernels::reference
