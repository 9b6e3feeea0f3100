#include <limits>
#include <utility>
#include <vector>

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
  float *p, *ds;        // [64, 64], (key, query)
  float *lse, *delta;   // [64]
  float *bias, *dbias;  // as pack_bias makes them
};

Buffers buffers_of(const Head& head) {
  const std::int64_t whole = head.padded_seq * head.padded_width, part = block * head.padded_width;
  const std::int64_t rest = 2 * block * block + 2 * block + 2 * head.bias_numbers();
  float* p = thread_scratch().of<float>(static_cast<std::size_t>(4 * whole + 5 * part + rest));
  const auto take = [&p](std::int64_t count) { return std::exchange(p, p + count); };
  return {take(whole),
          take(whole),
          take(whole),
          take(whole),
          take(part),
          take(part),
          take(part),
          take(part),
          take(part),
          take(block * block),
          take(block * block),
          take(block),
          take(block),
          take(head.bias_numbers()),
          p};
}

template <class T>
struct Operands {
  const T* dy;
  Qkv<const T> in;
  const T* bias;
  const T* y;
  const float* log_sum_exp;
  Qkv<T> grads;
  float* dbias;  // of each head of each sequence, by distance; null where there is no bias
};

/// log Σ exp, and Σ_d dy·y, of a block of queries; behind the last such that probabilities are zero.
template <class T>
void gather_rows(const Head& head, std::int64_t first, std::int64_t queries, const Operands<T>& o, const Buffers& b) {
  std::fill_n(b.lse, block, std::numeric_limits<float>::infinity());
  std::fill_n(b.delta, block, 0.0F);
  for (std::int64_t i = 0; i < queries; ++i) {
    b.lse[i] = o.log_sum_exp[head.lse_at + first + i];
    b.delta[i] = sum(
        head.width, [](Vec u, Vec v) { return u * v; }, b.dy + i * head.padded_width,
        o.y + head.y_at + (first + i) * head.inner);
  }
}

/// p: scores → probabilities; ds: gradients of probabilities → gradients of scores. Hidden ones become zero.
void differentiate(const Pair& pair, const Buffers& b) {
  const std::int64_t hidden = std::max(pair.keys, pair.key_end());
  for (float* const scores : {b.p, b.ds}) std::fill(scores + pair.keys * block, scores + hidden * block, 0.0F);
  for (std::int64_t key = 0; key < std::min(pair.keys, pair.key_end()); ++key) {
    for (std::int64_t v = pair.first_vector(key); v < pair.query_vectors(); ++v) {
      const std::int64_t at = key * block + v * lanes;
      Vec p = exp(load(b.p + at) - load(b.lse + v * lanes));
      if (pair.diagonal) p = seen(key - v * lanes) ? p : Vec{};
      if (pair.cut_by_window()) p = in_window(pair.window_end + key - v * lanes) ? p : Vec{};
      store(b.p + at, p);
      store(b.ds + at, p * (load(b.ds + at) - load(b.delta + v * lanes)));
    }
  }
}

template <class T>
void write(const Head& head, std::int64_t rows, const float* from, float scale, T* to, std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    map(
        head.width, to + i * stride, [scale](Vec s) { return s * scale; }, from + i * head.padded_width);
  }
}

/// Writes dq of one head of queries and adds to the sums of its keys and values, which are packed; `o` is of the head.
template <class T>
void backward(const Head& head, const Operands<T>& o, const Buffers& b) {
  const std::int64_t part = block * head.padded_width;
  for (std::int64_t i = 0; i < head.blocks(); ++i) {
    const std::int64_t first = i * block, queries = head.valid(i), stride = o.in.q_stride;
    pack(queries, block, head.width, head.padded_width, o.in.q + first * stride, stride, head.scale, b.queries);
    pack(queries, block, head.width, head.padded_width, o.dy + head.y_at + first * head.inner, head.inner, 1, b.dy);
    transpose(head.padded_width, b.queries, b.queries_t);
    transpose(head.padded_width, b.dy, b.dy_t);
    gather_rows(head, first, queries, o, b);
    std::fill_n(b.dqueries, part, 0.0F);
    for (std::int64_t j = head.first_block_seen(i); j < head.blocks_seen(i); ++j) {
      const Pair pair = head.pair(i, j);
      multiply_transposed(pair, head, b.keys + j * part, b.queries_t, b.p);
      if (head.slope != 0) add_slope(pair, head.slope, b.p);
      if (o.bias) add_bias(pair, head, b.bias, b.p);
      multiply_transposed(pair, head, b.values + j * part, b.dy_t, b.ds);
      differentiate(pair, b);
      if (o.bias) add_to_bias(pair, head, b.ds, b.dbias);
      add_to_keys(pair, head, b.p, b.dy, b.dvalues + j * part);
      add_to_keys(pair, head, b.ds, b.queries, b.dkeys + j * part);
      add_to_queries(pair, head, b.ds, b.keys + j * part, b.dqueries);
    }
    write(head, queries, b.dqueries, head.scale, o.grads.q + first * o.grads.q_stride, o.grads.q_stride);
  }
}

template <class T>
void begin_bias(const Head& head, const T* bias, const Buffers& b) {
  pack_bias(head, bias, b.bias);
  std::fill_n(b.dbias, head.bias_numbers(), 0.0F);
}

void write_bias(const Head& head, const float* packed, float* to) {
  for (std::int64_t d = 1 - head.seq; d < head.seq; ++d) to[head.seq - 1 - d] = packed[d + head.padded_seq - 1];
}

/// The heads of queries that share the keys and values of head `index` of these, in order.
template <class T>
void backward_group(const Attention& o, const Operands<T>& all, std::int64_t index) {
  const std::int64_t first = index * o.group();
  const Head shape(o, first);
  const Buffers b = buffers_of(shape);
  Operands<T> mine = all;
  const auto move_to = [&](const Head& head) {
    mine.in = head_of(o, all.in, head.sequence, head.head);
    mine.grads = head_of(o, all.grads, head.sequence, head.head);
  };
  move_to(shape);
  pack_keys(shape, mine.in, b.keys, b.values);
  std::fill_n(b.dkeys, shape.padded_seq * shape.padded_width, 0.0F);
  std::fill_n(b.dvalues, shape.padded_seq * shape.padded_width, 0.0F);
  for (std::int64_t h = first; h < first + o.group(); ++h) {
    const Head head(o, h);
    move_to(head);
    if (mine.bias) begin_bias(head, mine.bias, b);
    backward(head, mine, b);
    if (mine.dbias) write_bias(head, b.dbias, mine.dbias + h * o.distances());
  }
  write(shape, shape.seq, b.dkeys, 1, mine.grads.k, mine.grads.kv_stride);
  write(shape, shape.seq, b.dvalues, 1, mine.grads.v, mine.grads.kv_stride);
}

/// Sums over sequences, in order.
template <class T>
void sum_bias(const Attention& o, const std::vector<float>& parts, T* dbias) {
  const std::int64_t count = o.heads * o.distances();
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::int64_t sequence = 0; sequence < o.batch; ++sequence)
      sum += parts[static_cast<std::size_t>(sequence * count + i)];
    dbias[i] = static_cast<T>(sum);
  }
}

template <class T>
void backward_all(const Attention& o, const Operands<T>& all) {
  share(o.batch * o.keys(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) backward_group(o, all, index);
  });
}

}  // namespace

void attention_backward(const Attention& o, Const dy, Const q, Const k, Const v, Const bias, Const y, Const log_sum_exp,
                        Mut dq, Mut dk, Mut dv, Mut dbias) {
  std::vector<float> parts(static_cast<std::size_t>(dbias.data ? o.batch * o.heads * o.distances() : 0));
  by_number(dq.dtype, [&]<class T>(T) {
    backward_all<T>(o, {as<T>(dy), qkv_of<T>(o, q, k, v), as<T>(bias), as<T>(y), as<float>(log_sum_exp),
                        qkv_of<T>(o, dq, dk, dv), dbias.data ? parts.data() : nullptr});
    if (dbias.data) sum_bias(o, parts, as<T>(dbias));
  });
}

}  // namespace foreshard::kernels::cpu
