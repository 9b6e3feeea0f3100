#include <limits>
#include <utility>

#include "kernels/cpu/attention_block.hpp"
#include "kernels/cpu/exp.hpp"
#include "kernels/cpu/kernels.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// Probabilities are relative to e^shift. It follows the largest score only when that has grown by more than this,
/// which is far from overflow (e^88) and makes rescaling rare.
constexpr float slack = 16;

constexpr float hidden_score = -std::numeric_limits<float>::infinity();

/// The buffers of one head: keys, values [padded_seq, padded_width]; queries [64, padded_width] and transposed; sums
/// [64, padded_width]; scores [64, 64] (key, query); biases.
struct Buffers {
  float *keys, *values, *rows, *queries, *sums, *scores, *bias;
};

Buffers buffers_of(const Head& head) {
  const std::int64_t whole = head.padded_seq * head.padded_width, part = block * head.padded_width;
  const std::int64_t count = 2 * whole + 3 * part + block * block + head.bias_numbers();
  float* p = thread_scratch().of<float>(static_cast<std::size_t>(count));
  const auto take = [&p](std::int64_t size) { return std::exchange(p, p + size); };
  return {take(whole), take(whole), take(part), take(part), take(part), take(block * block), p};
}

/// The running softmax of a block of queries, a lane for each.
struct Softmax {
  Vec shift[block_vectors], total[block_vectors];

  /// Turns scores [key, query] into e^(score − shift), adds them to `total`, and rescales what came before if it must.
  void absorb(const Pair& pair, const Head& head, bool first, float* scores, float* sums) {
    std::fill(scores + pair.keys * block, scores + std::max(pair.keys, pair.key_end()) * block, hidden_score);
    for (std::int64_t v = 0; v < pair.query_vectors(); ++v) {
      const std::int64_t keys = std::min(pair.keys_seen((v + 1) * lanes), pair.key_end());
      float* column = scores + v * lanes;
      if (pair.diagonal) hide(v * lanes, keys, column);
      if (pair.cut_by_window()) hide_behind(pair.window_end - v * lanes, keys, column);
      raise(v, highest(keys, column), first, head, sums);
      total[v] += exponentials(keys, shift[v], column);
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

  static Vec highest(std::int64_t keys, const float* column) {
    Vec even = load(column), odd = even;
    for (std::int64_t key = 0; key < keys; key += 2) {
      even = max(load(column + key * block), even);
      odd = max(load(column + (key + 1) * block), odd);
    }
    return max(even, odd);
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
    const Vec raised = grown ? high : shift[v], factor = exp(shift[v] - raised);
    shift[v] = raised;
    total[v] *= factor;
    for (std::int64_t lane = 0; lane < lanes; ++lane) {
      float* row = sums + (v * lanes + lane) * head.padded_width;
      map(
          head.padded_width, row, [f = factor[lane]](Vec s) { return s * f; }, row);
    }
  }

  static Vec exponentials(std::int64_t keys, Vec shift, float* column) {
    Vec even = {}, odd = {};
    for (std::int64_t key = 0; key < keys; key += 2) {
      const Vec p = exp(load(column + key * block) - shift), q = exp(load(column + (key + 1) * block) - shift);
      store(column + key * block, p);
      store(column + (key + 1) * block, q);
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
template <class T>
void attend(const Head& head, bool biased, const Qkv<const T>& in, const Buffers& b, T* y, float* log_sum_exp) {
  const std::int64_t part = block * head.padded_width;
  for (std::int64_t i = 0; i < head.blocks(); ++i) {
    const std::int64_t first = i * block, queries = head.valid(i);
    pack(queries, block, head.width, head.padded_width, in.q + first * in.q_stride, in.q_stride, head.scale, b.rows);
    transpose(head.padded_width, b.rows, b.queries);
    std::fill_n(b.sums, part, 0.0F);
    Softmax softmax;
    const std::int64_t begin = head.first_block_seen(i), end = head.blocks_seen(i);
    for (std::int64_t n = begin; n < end; ++n) {
      const std::int64_t j = head.window < head.seq ? begin + end - 1 - n : n;
      const Pair pair = head.pair(i, j);
      multiply_transposed(pair, head, b.keys + j * part, b.queries, b.scores);
      if (head.slope != 0) add_slope(pair, head.slope, b.scores);
      if (biased) add_bias(pair, head, b.bias, b.scores);
      softmax.absorb(pair, head, n == begin, b.scores, b.sums);
      add_to_queries(pair, head, b.scores, b.values + j * part, b.sums);
    }
    write(head, softmax, first, queries, b.sums, y, log_sum_exp);
  }
}

template <class T>
void attend_all(const Attention& o, const Qkv<const T>& all, const T* bias, T* y, float* log_sum_exp) {
  share(o.batch * o.heads, 1, [=, &o, &all](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const Head head(o, index);
      const Buffers b = buffers_of(head);
      const Qkv<const T> in = head_of(o, all, head.sequence, head.head);
      if (index == begin || index % o.group() == 0) pack_keys(head, in, b.keys, b.values);
      if (bias) pack_bias(head, bias, b.bias);
      attend(head, bias != nullptr, in, b, y, log_sum_exp);
    }
  });
}

}  // namespace

void attention(const Attention& o, Const q, Const k, Const v, Const bias, Mut y, Mut log_sum_exp) {
  by_number(y.dtype,
            [&]<class T>(T) { attend_all(o, qkv_of<T>(o, q, k, v), as<T>(bias), as<T>(y), as<float>(log_sum_exp)); });
}

}  // namespace foreshard::kernels::cpu
