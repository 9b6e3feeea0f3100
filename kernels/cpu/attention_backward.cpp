#include <utility>

#include "kernels/cpu/attention_block.hpp"
#include "kernels/cpu/exp.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// The buffers of one head. Of the whole head, [padded_seq, padded_width]: keys, values and their gradients.
/// Of a block of queries: [64, padded_width] in rows, and transposed.
struct Buffers {
  float *keys, *values, *dkeys, *dvalues;
  float *queries, *queries_t, *dy, *dy_t, *dqueries;
  float *p, *ds;       // [64, 64], (key, query)
  float *lse, *delta;  // [64]
};

Buffers buffers_of(const Head& head) {
  const std::int64_t whole = head.padded_seq * head.padded_width, part = block * head.padded_width;
  float* p = thread_scratch().of<float>(static_cast<std::size_t>(4 * whole + 5 * part + 2 * block * block + 2 * block));
  const auto take = [&p](std::int64_t count) { return std::exchange(p, p + count); };
  return {take(whole), take(whole), take(whole),         take(whole),         take(part),  take(part), take(part),
          take(part),  take(part),  take(block * block), take(block * block), take(block), take(block)};
}

/// log Σ exp, and Σ_d dy·y, of a block of queries; zero behind the last.
template <class T>
void gather_rows(const Head& head, std::int64_t first, std::int64_t queries, const T* y, const float* log_sum_exp,
                 const Buffers& b) {
  std::fill_n(b.lse, block, 0.0F);
  std::fill_n(b.delta, block, 0.0F);
  for (std::int64_t i = 0; i < queries; ++i) {
    b.lse[i] = log_sum_exp[head.lse_at + first + i];
    b.delta[i] = sum(
        head.width, [](Vec u, Vec v) { return u * v; }, b.dy + i * head.padded_width,
        y + head.y_at + (first + i) * head.inner);
  }
}

/// p: scores → probabilities; ds: gradients of probabilities → gradients of scores. Hidden ones become zero.
void differentiate(const Pair& pair, const Buffers& b) {
  for (std::int64_t key = 0; key < pair.key_end(); ++key) {
    for (std::int64_t v = pair.first_vector(key); v < pair.query_vectors(); ++v) {
      const std::int64_t at = key * block + v * lanes;
      Vec p = exp(load(b.p + at) - load(b.lse + v * lanes));
      if (pair.diagonal) p = seen(key - v * lanes) ? p : Vec{};
      store(b.p + at, p);
      store(b.ds + at, p * (load(b.ds + at) - load(b.delta + v * lanes)));
    }
  }
}

template <class T>
void write(const Head& head, std::int64_t rows, const float* from, float scale, T* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    map(
        head.width, to + i * 3 * head.inner, [scale](Vec s) { return s * scale; }, from + i * head.padded_width);
  }
}

template <class T>
void backward(const Head& head, const T* dy, const T* qkv, const T* y, const float* log_sum_exp, T* dqkv) {
  const Buffers b = buffers_of(head);
  const T* q = qkv + head.qkv_at;
  T* dq = dqkv + head.qkv_at;
  const std::int64_t stride = 3 * head.inner, part = block * head.padded_width, whole = head.blocks() * part;
  pack(head.seq, head.padded_seq, head.width, head.padded_width, q + head.inner, stride, 1, b.keys);
  pack(head.seq, head.padded_seq, head.width, head.padded_width, q + 2 * head.inner, stride, 1, b.values);
  std::fill_n(b.dkeys, whole, 0.0F);
  std::fill_n(b.dvalues, whole, 0.0F);
  for (std::int64_t i = 0; i < head.blocks(); ++i) {
    const std::int64_t first = i * block, queries = std::min(block, head.seq - first);
    pack(queries, block, head.width, head.padded_width, q + first * stride, stride, head.scale(), b.queries);
    pack(queries, block, head.width, head.padded_width, dy + head.y_at + first * head.inner, head.inner, 1, b.dy);
    transpose(head.padded_width, b.queries, b.queries_t);
    transpose(head.padded_width, b.dy, b.dy_t);
    gather_rows(head, first, queries, y, log_sum_exp, b);
    std::fill_n(b.dqueries, part, 0.0F);
    for (std::int64_t j = 0; j <= i; ++j) {
      const Pair pair{queries, i == j};
      multiply_transposed(pair, head, b.keys + j * part, b.queries_t, b.p);
      multiply_transposed(pair, head, b.values + j * part, b.dy_t, b.ds);
      differentiate(pair, b);
      add_to_keys(pair, head, b.p, b.dy, b.dvalues + j * part);
      add_to_keys(pair, head, b.ds, b.queries, b.dkeys + j * part);
      add_to_queries(pair, head, b.ds, b.keys + j * part, b.dqueries);
    }
    write(head, queries, b.dqueries, head.scale(), dq + first * stride);
  }
  write(head, head.seq, b.dkeys, 1, dq + head.inner);
  write(head, head.seq, b.dvalues, 1, dq + 2 * head.inner);
}

template <class T>
void backward_all(const Attention& o, const T* dy, const T* qkv, const T* y, const float* log_sum_exp, T* dqkv) {
  share(o.batch * o.heads, 1, [=, &o](std::int64_t begin, std::int64_t end) {
    for (std::int64_t h = begin; h < end; ++h) backward(Head(o, h), dy, qkv, y, log_sum_exp, dqkv);
  });
}

}  // namespace

void attention_backward(const Attention& o, Const dy, Const qkv, Const y, Const log_sum_exp, Mut dqkv) {
  by_number(dqkv.dtype,
            [&]<class T>(T) { backward_all(o, as<T>(dy), as<T>(qkv), as<T>(y), as<float>(log_sum_exp), as<T>(dqkv)); });
}

}  // namespace foreshard::kernels::cpu
