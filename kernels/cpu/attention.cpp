#include "kernels/cpu/attention.hpp"

#include <limits>
#include <utility>

#include "kernels/cpu/attention_words.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// Probabilities are relative to e^shift. It follows the largest score only when that has grown by more than this,
/// which is far from overflow (e^88) and makes rescaling rare.
constexpr float slack = 16;

/// The buffers of one head: keys in rows and values in stacks [padded_seq, padded_width]; queries in rows [64,
/// padded_width] and transposed; sums [64, padded_width]; scores [64, 64] (key, query), and in their place
/// probabilities in stacks; biases.
template <class Word>
struct Buffers {
  Word *keys, *values, *rows, *queries, *p;
  float *sums, *scores, *bias;
};

template <class Word>
Buffers<Word> take_buffers(const Head& head, Cutter& cut) {
  const auto words = [&](std::int64_t rows) { return cut.take<Word>(rows * row_words<Word>(head)); };
  Buffers<Word> b;
  b.keys = words(head.padded_seq);
  b.values = words(head.padded_seq);
  b.rows = words(block);
  b.queries = words(block);
  b.sums = cut.take<float>(block * head.padded_width);
  b.scores = cut.take<float>(block * block);
  b.p = reinterpret_cast<Word*>(b.scores);
  b.bias = cut.take<float>(head.bias_numbers());
  return b;
}

template <class Word>
Buffers<Word> buffers_of(const Head& head) {
  return Cutter::cut([&head](Cutter& cut) { return take_buffers<Word>(head, cut); });
}

/// The running softmax of a block of queries, a lane for each.
struct Softmax {
  float factor;  // score_factor
  Vec shift[block_vectors], total[block_vectors];

  /// Turns scores [key, query] into e^(score − shift), as stacks p in their place, adds them to `total`, and rescales
  /// what came before if it must.
  template <class Word>
  void absorb(const Pair& pair, const Head& head, bool first, float* scores, Word* p, float* sums) {
    std::fill(scores + pair.keys * block, scores + std::max(pair.keys, pair.key_end()) * block, hidden_score);
    for (std::int64_t v = 0; v < pair.query_vectors(); ++v) {
      const std::int64_t keys = std::min(pair.keys_seen((v + 1) * lanes), pair.key_end());
      float* column = scores + v * lanes;
      if (pair.diagonal) hide(v * lanes, keys, column);
      if (pair.cut_by_window()) hide_behind(pair.window_end - v * lanes, keys, column);
      raise(v, highest<Word>(keys, column), first, head, sums);
      total[v] += exponentials(keys, shift[v], column, p + v * lanes);
    }
  }

 private:
  static void hide(std::int64_t first_query, std::int64_t keys, float* column) {
    const Vec hidden = broadcast(hidden_score);
    for (std::int64_t key = first_query; key < keys; ++key) {
      store(column + key * block, seen(key - first_query) ? load(column + key * block) : hidden);
    }
  }

  /// Key `key` is seen by the lanes before `end + key`.
  static void hide_behind(std::int64_t end, std::int64_t keys, float* column) {
    const Vec hidden = broadcast(hidden_score);
    for (std::int64_t key = 0; key < std::min(keys, lanes - end); ++key)
      store(column + key * block, in_window(end + key) ? load(column + key * block) : hidden);
  }

  template <class Word>
  Vec highest(std::int64_t keys, const float* column) const {
    Vec even = load(column), odd = even;
    for (std::int64_t key = 0; key < keys; key += 2) {
      even = max(load(column + key * block), even);
      odd = max(load(column + (key + 1) * block), odd);
    }
    const Vec high = max(even, odd);
    return scaled_queries<Word> ? high : high * factor;
  }

  void raise(std::int64_t v, Vec high, bool first, const Head& head, float* sums) {
    if (first) {
      shift[v] = high;
      total[v] = Vec{};
      return;
    }
    const IntVec grown = high > shift[v] + slack;
    const IntVec none = {};
    if (std::memcmp(&grown, &none, sizeof grown) == 0) return;
    const Vec raised = grown ? high : shift[v], rescale = exp(shift[v] - raised);
    shift[v] = raised;
    total[v] *= rescale;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      float* row = sums + (v * lanes + lane) * head.padded_width;
      map(
          head.padded_width, row, [f = rescale[lane]](Vec s) { return s * f; }, row);
    }
  }

  template <class Word>
  Vec exponentials(std::int64_t keys, Vec below, const float* column, Word* to) const {
    Vec even = {}, odd = {};
    for (std::int64_t key = 0; key < keys; key += 2) {
      const Vec p = probability<Word>(load(column + key * block), factor, below),
                q = probability<Word>(load(column + (key + 1) * block), factor, below);
      put_stack(to, key, p, q);
      even += p;
      odd += q;
    }
    return even + odd;
  }
};

template <class T>
void write(const Head& head, const Softmax& softmax, std::int64_t first, std::int64_t queries, const float* sums, T* y,
           float* log_sum_exp) {
  for (std::int64_t i = 0; i < queries; ++i) {
    const float total = softmax.total[i / lanes][i % lanes], inverse = 1 / total;
    map(
        head.width, y + head.y_at + (first + i) * head.inner, [inverse](Vec s) { return s * inverse; },
        sums + i * head.padded_width);
    log_sum_exp[head.lse_at + first + i] = softmax.shift[i / lanes][i % lanes] + std::log(total);
  }
}

/// `in` is of the head; its keys and values are packed, and its biases if there are any. Within a window blocks of keys
/// come last first, so that every query sees some of the first of them.
template <class T, class Word>
void attend(const Head& head, bool biased, const Qkv<const T>& in, const Buffers<Word>& b, T* y, float* log_sum_exp) {
  const std::int64_t part = block * row_words<Word>(head);
  for (std::int64_t i = 0; i < head.blocks(); ++i) {
    const std::int64_t first = i * block, queries = head.valid(i);
    pack_queries(queries, head, in.q + first * in.q_stride, in.q_stride, b.rows);
    transpose(row_words<Word>(head), b.rows, b.queries);
    std::fill_n(b.sums, block * head.padded_width, 0.0F);
    Softmax softmax{score_factor<Word>(head, biased)};
    const std::int64_t begin = head.first_block_seen(i), end = head.blocks_seen(i);
    for (std::int64_t n = begin; n < end; ++n) {
      const std::int64_t j = head.window < head.seq ? begin + end - 1 - n : n;
      const Pair pair = head.pair(i, j);
      multiply_transposed(pair, head, b.keys + j * part, b.queries, b.scores);
      finish_scores<Word>(pair, head, biased ? b.bias : nullptr, b.scores);
      softmax.absorb(pair, head, n == begin, b.scores, b.p, b.sums);
      add_to_queries(pair, head, b.p, b.values + j * part, b.sums);
    }
    write(head, softmax, first, queries, b.sums, y, log_sum_exp);
  }
}

template <class Word, class T>
void attend_all(const Attention& o, const Qkv<const T>& all, const T* bias, T* y, float* log_sum_exp) {
  share(o.batch * o.heads, 1, [=, &o, &all](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const Head head(o, index);
      const Buffers<Word> b = buffers_of<Word>(head);
      const Qkv<const T> in = head_of(o, all, head.sequence, head.head);
      if (index == begin || index % o.group() == 0) {
        pack_rows(head.seq, head.padded_seq, head, in.k, in.kv_stride, b.keys);
        pack_stacks(head.seq, head.padded_seq, head, in.v, in.kv_stride, b.values);
      }
      if (bias) pack_bias(head, bias, b.bias);
      attend(head, bias != nullptr, in, b, y, log_sum_exp);
    }
  });
}

}  // namespace

void attention(const Attention& o, MatmulRoute route, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) {
  by_words(y.dtype, route, [&]<class T, class Word>(T, Word) {
    attend_all<Word>(o, qkv_of<T>(o, q, k, v), as<T>(bias), as<T>(y), as<float>(log_sum_exp));
  });
}

}  // namespace foreshard::kernels::cpu
