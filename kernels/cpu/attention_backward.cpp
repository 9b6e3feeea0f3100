#include <limits>
#include <utility>
#include <vector>

#include "kernels/cpu/attention.hpp"
#include "kernels/cpu/attention_words.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// The buffers of one head. Of the whole head, [padded_seq, padded_width]: keys in rows and in stacks, values in rows,
/// and the gradients of both. Of a block of queries, [64, padded_width]: queries and dy in rows, transposed, and in
/// stacks. Where rows are stacks, they are one buffer.
template <class Word>
struct Buffers {
  Word *keys, *key_stacks, *values;
  float *dkeys, *dvalues;
  Word *query_rows, *queries_t, *queries, *dy_rows, *dy_t, *dy;
  float* dqueries;
  float *p, *ds;                       // [64, 64], (key, query)
  Word *p_rows, *ds_rows, *ds_stacks;  // the same in words
  float *lse, *delta;                  // [64]
  float *bias, *dbias;                 // as pack_bias makes them
};

/// Scores as floats, and in words; these are one if words are floats.
template <class Word>
void take_scores(Cutter& cut, Buffers<Word>& b) {
  b.p = cut.take<float>(block * block);
  b.ds = cut.take<float>(block * block);
  if constexpr (rows_are_stacks<Word>) {
    b.p_rows = b.p;
    b.ds_rows = b.ds_stacks = b.ds;
  } else {
    for (Word** words : {&b.p_rows, &b.ds_rows, &b.ds_stacks})
      *words = cut.take<Word>(block * block / numbers_in<Word>);
  }
}

template <class Word>
Buffers<Word> take_buffers(const Head& head, Cutter& cut) {
  const auto words = [&](std::int64_t rows) { return cut.take<Word>(rows * row_words<Word>(head)); };
  const auto sums = [&](std::int64_t rows) { return cut.take<float>(rows * head.padded_width); };
  Buffers<Word> b;
  for (Word** whole : {&b.keys, &b.values}) *whole = words(head.padded_seq);
  for (float** whole : {&b.dkeys, &b.dvalues}) *whole = sums(head.padded_seq);
  for (Word** part : {&b.queries, &b.queries_t, &b.dy, &b.dy_t}) *part = words(block);
  b.key_stacks = rows_are_stacks<Word> ? b.keys : words(head.padded_seq);
  b.query_rows = rows_are_stacks<Word> ? b.queries : words(block);
  b.dy_rows = rows_are_stacks<Word> ? b.dy : b.query_rows;
  b.dqueries = sums(block);
  take_scores(cut, b);
  for (float** statistic : {&b.lse, &b.delta}) *statistic = cut.take<float>(block);
  for (float** bias : {&b.bias, &b.dbias}) *bias = cut.take<float>(head.bias_numbers());
  return b;
}

template <class Word>
Buffers<Word> buffers_of(const Head& head) {
  return Cutter::cut([&head](Cutter& cut) { return take_buffers<Word>(head, cut); });
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
template <class T, class Word>
void gather_rows(const Head& head, std::int64_t first, std::int64_t queries, const Operands<T>& o,
                 const Buffers<Word>& b) {
  std::fill_n(b.lse, block, std::numeric_limits<float>::infinity());
  std::fill_n(b.delta, block, 0.0F);
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t d = 0; d < head.width; d += lanes)
      __builtin_prefetch(o.y + head.y_at + (first + i + 16) * head.inner + d);
    b.lse[i] = o.log_sum_exp[head.lse_at + first + i];
    b.delta[i] = sum(
        head.width, [](Vec u, Vec v) { return u * v; }, o.dy + head.y_at + (first + i) * head.inner,
        o.y + head.y_at + (first + i) * head.inner);
  }
}

/// A vector of probabilities, and of the gradients of their scores; zero where the key is hidden.
struct Differentiated {
  Vec p, ds;
};

/// `at` is the place of key `key` and the first query of vector v in p, which holds scores, and in ds, which holds the
/// gradients of probabilities.
template <class Word>
Differentiated differentiated(const Pair& pair, float factor, const Buffers<Word>& b, std::int64_t key,
                              std::int64_t v) {
  const std::int64_t at = key * block + v * lanes;
  Vec p = probability<Word>(load(b.p + at), factor, load(b.lse + v * lanes));
  if (pair.diagonal) p = seen(key - v * lanes) ? p : Vec{};
  if (pair.cut_by_window()) p = in_window(pair.window_end + key - v * lanes) ? p : Vec{};
  return {p, p * (load(b.ds + at) - load(b.delta + v * lanes))};
}

/// p: scores → probabilities; ds: gradients of probabilities → gradients of scores. Hidden ones become zero.
void differentiate(const Pair& pair, float factor, const Buffers<float>& b, bool /*biased*/) {
  const std::int64_t hidden = std::max(pair.keys, pair.key_end());
  for (float* const scores : {b.p, b.ds}) std::fill(scores + pair.keys * block, scores + hidden * block, 0.0F);
  for (std::int64_t key = 0; key < std::min(pair.keys, pair.key_end()); ++key) {
    for (std::int64_t v = pair.first_vector(key); v < pair.query_vectors(); ++v) {
      const auto [p, ds] = differentiated(pair, factor, b, key, v);
      store(b.p + key * block + v * lanes, p);
      store(b.ds + key * block + v * lanes, ds);
    }
  }
}

/// The same into rows and stacks; only the gradient of a bias needs ds unrounded.
void differentiate(const Pair& pair, float factor, const Buffers<BFloat16Pair>& b, bool biased) {
  constexpr std::int64_t words = block / 2;
  std::fill(b.p + pair.keys * block, b.p + std::max(pair.keys, pair.key_end()) * block, hidden_score);
  for (std::int64_t key = 0; key < pair.key_end(); key += 2) {
    for (std::int64_t v = pair.first_vector(key); v < pair.query_vectors(); ++v) {
      const Differentiated even = differentiated(pair, factor, b, key, v),
                           odd = differentiated(pair, factor, b, key + 1, v);
      const std::int64_t at = key * words + v * (lanes / 2);
      store_rows(rounded_rows(even.p, odd.p), b.p_rows + at, b.p_rows + at + words);
      const PairVec ds = rounded_rows(even.ds, odd.ds);
      store_rows(ds, b.ds_rows + at, b.ds_rows + at + words);
      store(b.ds_stacks + key / 2 * block + v * lanes, stacked(ds));
      if (biased) put_stack(b.ds + v * lanes, key, even.ds, odd.ds);
    }
  }
}

template <class T>
void write(const Head& head, std::int64_t rows, const float* from, float scale, T* to, std::int64_t stride) {
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t d = 0; d < head.width; d += lanes) __builtin_prefetch(to + (i + 16) * stride + d, 1);
    map(
        head.width, to + i * stride, [scale](Vec s) { return s * scale; }, from + i * head.padded_width);
  }
}

/// A block of queries and of dy.
template <class T, class Word>
void pack_block(std::int64_t queries, const Head& head, const T* q, std::int64_t stride, const T* dy,
                const Buffers<Word>& b) {
  const std::int64_t words = row_words<Word>(head);
  pack_queries(queries, head, q, stride, b.query_rows);
  transpose(words, b.query_rows, b.queries_t);
  pack_rows(queries, block, head, dy, head.inner, b.dy_rows);
  transpose(words, b.dy_rows, b.dy_t);
  if constexpr (!rows_are_stacks<Word>) {
    pack_stacks(queries, block, head, q, stride, b.queries);
    pack_stacks(queries, block, head, dy, head.inner, b.dy);
  }
}

template <class T, class Word>
void pack_keys(const Head& head, const Qkv<const T>& in, const Buffers<Word>& b) {
  pack_rows(head.seq, head.padded_seq, head, in.k, in.kv_stride, b.keys);
  pack_rows(head.seq, head.padded_seq, head, in.v, in.kv_stride, b.values);
  if constexpr (!rows_are_stacks<Word>) pack_stacks(head.seq, head.padded_seq, head, in.k, in.kv_stride, b.key_stacks);
}

/// Writes dq of one head of queries and adds to the sums of its keys and values, which are packed; `o` is of the head.
template <class T, class Word>
void backward(const Head& head, const Operands<T>& o, const Buffers<Word>& b) {
  const std::int64_t words = row_words<Word>(head), part = block * words, part_sums = block * head.padded_width;
  for (std::int64_t i = 0; i < head.blocks(); ++i) {
    const std::int64_t first = i * block, queries = head.valid(i), stride = o.in.q_stride;
    pack_block(queries, head, o.in.q + first * stride, stride, o.dy + head.y_at + first * head.inner, b);
    gather_rows(head, first, queries, o, b);
    std::fill_n(b.dqueries, part_sums, 0.0F);
    for (std::int64_t j = head.first_block_seen(i); j < head.blocks_seen(i); ++j) {
      const Pair pair = head.pair(i, j);
      multiply_transposed(pair, head, b.keys + j * part, b.queries_t, b.p);
      finish_scores<Word>(pair, head, o.bias ? b.bias : nullptr, b.p);
      multiply_transposed(pair, head, b.values + j * part, b.dy_t, b.ds);
      differentiate(pair, score_factor<Word>(head, o.bias != nullptr), b, o.bias != nullptr);
      if (o.bias) add_to_bias(pair, head, b.ds, b.dbias);
      add_to_keys(pair, head, b.p_rows, b.dy, b.dvalues + j * part_sums);
      add_to_keys(pair, head, b.ds_rows, b.queries, b.dkeys + j * part_sums);
      add_to_queries(pair, head, b.ds_stacks, b.key_stacks + j * part, b.dqueries);
    }
    write(head, queries, b.dqueries, head.scale, o.grads.q + first * o.grads.q_stride, o.grads.q_stride);
  }
}

template <class T, class Word>
void begin_bias(const Head& head, const T* bias, const Buffers<Word>& b) {
  pack_bias(head, bias, b.bias);
  std::fill_n(b.dbias, head.bias_numbers(), 0.0F);
}

void write_bias(const Head& head, const float* packed, float* to) {
  for (std::int64_t d = 1 - head.seq; d < head.seq; ++d) to[head.seq - 1 - d] = packed[d + head.padded_seq - 1];
}

/// The heads of queries that share the keys and values of head `index` of these, in order.
template <class Word, class T>
void backward_group(const Attention& o, const Operands<T>& all, std::int64_t index) {
  const std::int64_t first = index * o.group();
  const Head shape(o, first);
  const Buffers<Word> b = buffers_of<Word>(shape);
  Operands<T> mine = all;
  const auto move_to = [&](const Head& head) {
    mine.in = head_of(o, all.in, head.sequence, head.head);
    mine.grads = head_of(o, all.grads, head.sequence, head.head);
  };
  move_to(shape);
  pack_keys(shape, mine.in, b);
  std::fill_n(b.dkeys, shape.padded_seq * shape.padded_width, 0.0F);
  std::fill_n(b.dvalues, shape.padded_seq * shape.padded_width, 0.0F);
  for (std::int64_t h = first; h < first + o.group(); ++h) {
    const Head head(o, h);
    move_to(head);
    if (mine.bias) begin_bias(head, mine.bias, b);
    backward(head, mine, b);
    if (mine.dbias) write_bias(head, b.dbias, mine.dbias + h * o.distances());
  }
  write(shape, shape.seq, b.dkeys, scaled_queries<Word> ? 1 : shape.scale, mine.grads.k, mine.grads.kv_stride);
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

template <class Word, class T>
void backward_all(const Attention& o, const Operands<T>& all) {
  share(o.batch * o.keys(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) backward_group<Word>(o, all, index);
  });
}

}  // namespace

void attention_backward(const Attention& o, MatmulRoute route, Const dy, Const q, Const k, Const v, Const bias, Const y,
                        Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dbias) {
  std::vector<float> parts(static_cast<std::size_t>(dbias.data ? o.batch * o.heads * o.distances() : 0));
  by_words(dq.dtype, route, [&]<class T, class Word>(T, Word) {
    backward_all<Word, T>(o, {as<T>(dy), qkv_of<T>(o, q, k, v), as<T>(bias), as<T>(y), as<float>(log_sum_exp),
                              qkv_of<T>(o, dq, dk, dv), dbias.data ? parts.data() : nullptr});
    if (dbias.data) sum_bias(o, parts, as<T>(dbias));
  });
}

}  // namespace foreshard::kernels::cpu
