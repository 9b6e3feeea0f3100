#include "kernels/cpu/reattention.hpp"

#include <cmath>
#include <limits>

#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

Vec reciprocal_root(Vec v) {
  for (int i = 0; i < lanes; ++i) v[i] = 1 / std::sqrt(v[i]);
  return v;
}

float highest_of(std::int64_t n, const float* x) {
  constexpr float lowest = -std::numeric_limits<float>::infinity();
  Vec highest = broadcast(lowest);
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) highest = max(highest, load(x + i));
  if (i < n) highest = max(highest, load_part(x + i, n - i, lowest));
  return fold_max(highest);
}

/// The buffers of one sequence: keys in columns, values in rows; and of eight queries.
struct Buffers {
  float *mixing, *keys, *values, *queries, *p, *n, *rstd, *y;
};

Buffers buffers_of(const Reattended& r) {
  return Cutter::cut([&r](Cutter& cut) {
    const auto take = [&](std::int64_t numbers) { return cut.take<float>(numbers); };
    Buffers b;
    b.mixing = take(round_up(mixing_numbers(r), lanes));
    b.keys = take(r.heads * r.width * r.padded_seq);
    b.values = take(r.heads * r.seq * r.padded_width);
    b.queries = take(r.heads * r.rows());
    for (float** weights : {&b.p, &b.n}) *weights = take(r.padded_heads * r.weights());
    b.rstd = take(r.weights());
    b.y = take(r.rows());
    return b;
  });
}

/// Scores of all heads, in place of which come probabilities; of eight queries.
void attend(const Reattended& r, const Buffers& b, std::int64_t valid, float* log_sum_exp) {
  for (std::int64_t h = 0; h < r.heads; ++h) {
    float* const scores = b.p + h * r.weights();
    multiply_columns(r, b.queries + h * r.rows(), b.keys + h * r.width * r.padded_seq, scores);
    for (std::int64_t i = 0; i < tile_rows; ++i) {
      const float log_sum = log_sum_exp_of(r, scores + i * r.padded_seq);
      if (i < valid) log_sum_exp[h * r.seq + i] = log_sum;
      find_probabilities(r, log_sum, scores + i * r.padded_seq);
    }
  }
}

template <class T>
struct Operands {
  const T *q, *k, *v, *mixing, *gain, *bias;
  T* y;
  float* log_sum_exp;
};

template <class T>
void forward(const Reattended& r, const Operands<T>& o, std::int64_t sequence) {
  const Buffers b = buffers_of(r);
  const HeadMixing by = pack_mixing(r, o.mixing, o.gain, o.bias, b.mixing);
  const std::int64_t token = sequence * r.seq * r.inner;
  pack_columns(r, o.k + token, b.keys);
  pack_heads(r, r.seq, r.seq, o.v + token, 1, b.values);
  for (std::int64_t first = 0; first < r.seq; first += tile_rows) {
    const std::int64_t valid = r.valid(first), at = token + first * r.inner;
    pack_heads(r, valid, tile_rows, o.q + at, r.scale, b.queries);
    attend(r, b, valid, o.log_sum_exp + sequence * r.heads * r.seq + first);
    mix(r, by, b.p, b.n);
    normalize_heads(r, b.n, b.rstd);
    for (std::int64_t g = 0; g < r.heads; ++g) {
      float* const n = b.n + g * r.weights();
      finish_weights(r, by, g, n, n);
      weigh_values(r, n, b.values + g * r.seq * r.padded_width, b.y);
      unpack_head(r, valid, b.y, 1, o.y + at + g * r.width);
    }
  }
}

}  // namespace

float log_sum_exp_of(const Reattended& r, const float* scores) {
  const float highest = highest_of(r.seq, scores);
  const std::int64_t whole = r.seq / lanes * lanes;
  const auto power = [highest](Vec v) { return exp(v - highest); };
  float total = sum(whole, power, scores);
  if (whole < r.seq) {
    constexpr float lowest = -std::numeric_limits<float>::infinity();
    total += fold_sum(power(load_part(scores + whole, r.seq - whole, lowest)));
  }
  return highest + std::log(total);
}

void find_probabilities(const Reattended& r, float log_sum_exp, float* scores) {
  map(
      r.seq, scores, [log_sum_exp](Vec v) { return exp(v - log_sum_exp); }, scores);
  std::fill(scores + r.seq, scores + r.padded_seq, 0.0F);
}

void mix(const Reattended& r, const HeadMixing& by, const float* p, float* mixed) {
  for (std::int64_t g = 0; g < r.padded_heads; g += tile_rows)
    multiply<float>(r.weights() / lanes, r.heads, {by.mixing + g, 1, r.padded_heads}, {p, r.weights()},
                    {mixed + g * r.weights(), r.weights()}, false);
}

void normalize_heads(const Reattended& r, float* mixed, float* rstd) {
  const float part = 1 / static_cast<float>(r.heads);
  for (std::int64_t at = 0; at < r.weights(); at += lanes) {
    float* const head = mixed + at;
    Vec mean = {}, variance = {};
    for (std::int64_t g = 0; g < r.heads; ++g) mean += load(head + g * r.weights());
    mean *= part;
    for (std::int64_t g = 0; g < r.heads; ++g) {
      const Vec off = load(head + g * r.weights()) - mean;
      variance += off * off;
    }
    const Vec root = reciprocal_root(variance * part + r.epsilon);
    store(rstd + at, root);
    for (std::int64_t g = 0; g < r.heads; ++g)
      store(head + g * r.weights(), (load(head + g * r.weights()) - mean) * root);
  }
}

void finish_weights(const Reattended& r, const HeadMixing& by, std::int64_t g, const float* normed, float* n) {
  map(
      r.weights(), n, [gain = by.gain[g], bias = by.bias[g]](Vec v) { return v * gain + bias; }, normed);
}

void reattention(const Reattention& o, Const q, Const k, Const v, Const mixing, Const gain, Const bias, Mut y,
                 Mut log_sum_exp) {
  by_number(y.dtype, [&]<class T>(T) {
    const Operands<T> operands{as<T>(q),    as<T>(k),    as<T>(v), as<T>(mixing),
                               as<T>(gain), as<T>(bias), as<T>(y), as<float>(log_sum_exp)};
    share(o.batch, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t sequence = begin; sequence < end; ++sequence) forward(Reattended(o), operands, sequence);
    });
  });
}

}  // namespace foreshard::kernels::cpu
