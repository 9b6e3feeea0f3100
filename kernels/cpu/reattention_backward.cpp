#include <vector>

#include "kernels/cpu/reattention.hpp"
#include "kernels/cpu/team.hpp"

namespace foreshard::kernels::cpu {
namespace {

/// The buffers of one sequence: keys and values in columns, keys in rows, and the gradients of both; and of eight
/// queries: rows of them and of dy, weights, and the gradients of weights and of probabilities.
struct Buffers {
  float *mixing, *key_columns, *value_columns, *keys, *dkeys, *dvalues;
  float *queries, *dy, *p, *normed, *rstd, *dn, *dp, *n, *dqueries;
};

Buffers buffers_of(const Reattended& r) {
  return Cutter::cut([&r](Cutter& cut) {
    const auto take = [&](std::int64_t numbers) { return cut.take<float>(numbers); };
    const std::int64_t row_end = round_up(r.seq, tile_rows);
    Buffers b;
    b.mixing = take(round_up(mixing_numbers(r), lanes));
    for (float** columns : {&b.key_columns, &b.value_columns}) *columns = take(r.heads * r.width * r.padded_seq);
    for (float** rows : {&b.keys, &b.dkeys, &b.dvalues}) *rows = take(r.heads * row_end * r.padded_width);
    for (float** rows : {&b.queries, &b.dy}) *rows = take(r.heads * r.rows());
    for (float** weights : {&b.p, &b.normed, &b.dn, &b.dp}) *weights = take(r.padded_heads * r.weights());
    for (float** weights : {&b.rstd, &b.n}) *weights = take(r.weights());
    b.dqueries = take(r.rows());
    return b;
  });
}

/// Gradients of the parameters: [heads, heads], and by head.
struct ParameterSums {
  float *mixing, *gain, *bias;
};
std::int64_t parameter_numbers(const Reattended& r) { return (r.heads + 2) * r.heads; }
ParameterSums sums_at(const Reattended& r, float* to) {
  return {to, to + r.heads * r.heads, to + (r.heads + 1) * r.heads};
}

template <class T>
struct Operands {
  const T *dy, *q, *k, *v, *mixing, *gain, *bias;
  const float* log_sum_exp;
  T *dq, *dk, *dv;
};

/// rows[key, d] += Σ_query weights[query, key]·of_queries[query, d] of a head.
void add_to_keys(const Reattended& r, const float* weights, const float* of_queries, float* rows) {
  for (std::int64_t j = 0; j < r.seq; j += tile_rows)
    multiply<float>(r.width_vectors(), tile_rows, {weights + j, 1, r.padded_seq}, {of_queries, r.padded_width},
                    {rows + j * r.padded_width, r.padded_width}, true);
}

/// Probabilities as forward had them, and what the norm makes of them.
void weigh_again(const Reattended& r, const HeadMixing& by, const Buffers& b, std::int64_t valid,
                 const float* log_sum_exp) {
  for (std::int64_t h = 0; h < r.heads; ++h) {
    float* const scores = b.p + h * r.weights();
    multiply_columns(r, b.queries + h * r.rows(), b.key_columns + h * r.width * r.padded_seq, scores);
    for (std::int64_t i = 0; i < valid; ++i)
      find_probabilities(r, log_sum_exp[h * r.seq + i], scores + i * r.padded_seq);
    std::fill(scores + valid * r.padded_seq, scores + r.weights(), 0.0F);
  }
  mix(r, by, b.p, b.normed);
  normalize_heads(r, b.normed, b.rstd);
}

/// From y to the weights and the values of head g; rows behind the last query have a dy of zero.
void through_values(const Reattended& r, const HeadMixing& by, const Buffers& b, std::int64_t g, ParameterSums sums) {
  const std::int64_t at = g * r.weights(), row_end = round_up(r.seq, tile_rows);
  const float* const dy = b.dy + g * r.rows();
  multiply_columns(r, dy, b.value_columns + g * r.width * r.padded_seq, b.dn + at);
  finish_weights(r, by, g, b.normed + at, b.n);
  add_to_keys(r, b.n, dy, b.dvalues + g * row_end * r.padded_width);
  sums.bias[g] += sum(r.weights(), same, b.dn + at);
  sums.gain[g] += sum(
      r.weights(), [](Vec d, Vec x) { return d * x; }, b.dn + at, b.normed + at);
}

/// dn becomes the gradient of what was normalised: rstd·(g − mean(g) − x̂·mean(g·x̂)) over heads, g = dn·gain.
void through_norm(const Reattended& r, const HeadMixing& by, const Buffers& b) {
  const float part = 1 / static_cast<float>(r.heads);
  for (std::int64_t at = 0; at < r.weights(); at += lanes) {
    Vec mean_g = {}, mean_gx = {};
    for (std::int64_t h = 0; h < r.heads; ++h) {
      const Vec g = load(b.dn + h * r.weights() + at) * by.gain[h];
      mean_g += g;
      mean_gx += g * load(b.normed + h * r.weights() + at);
    }
    mean_g *= part;
    mean_gx *= part;
    const Vec rstd = load(b.rstd + at);
    for (std::int64_t h = 0; h < r.heads; ++h) {
      float* const d = b.dn + h * r.weights() + at;
      store(d, rstd * (load(d) * by.gain[h] - mean_g - load(b.normed + h * r.weights() + at) * mean_gx));
    }
  }
}

/// From mixed weights to probabilities and to the mixing itself.
void through_mixing(const Reattended& r, const HeadMixing& by, const Buffers& b, ParameterSums sums) {
  for (std::int64_t h = 0; h < r.padded_heads; h += tile_rows)
    multiply<float>(r.weights() / lanes, r.heads, {by.mixing + h * r.padded_heads, r.padded_heads, 1},
                    {b.dn, r.weights()}, {b.dp + h * r.weights(), r.weights()}, false);
  for (std::int64_t h = 0; h < r.heads; ++h)
    for (std::int64_t g = 0; g < r.heads; ++g)
      sums.mixing[h * r.heads + g] += sum(
          r.weights(), [](Vec p, Vec d) { return p * d; }, b.p + h * r.weights(), b.dn + g * r.weights());
}

/// dp of a head becomes the gradient of its scores: p·(dp − Σ p·dp).
void through_softmax(const Reattended& r, const float* p, float* dp) {
  for (std::int64_t i = 0; i < tile_rows; ++i, p += r.padded_seq, dp += r.padded_seq) {
    const float delta = sum(
        r.padded_seq, [](Vec u, Vec v) { return u * v; }, p, dp);
    map(
        r.padded_seq, dp, [delta](Vec u, Vec v) { return u * (v - delta); }, p, dp);
  }
}

template <class T>
void differentiate(const Reattended& r, const HeadMixing& by, const Buffers& b, std::int64_t valid, T* dq,
                   ParameterSums sums) {
  const std::int64_t row_end = round_up(r.seq, tile_rows);
  for (std::int64_t g = 0; g < r.heads; ++g) through_values(r, by, b, g, sums);
  through_norm(r, by, b);
  through_mixing(r, by, b, sums);
  for (std::int64_t h = 0; h < r.heads; ++h) {
    float* const ds = b.dp + h * r.weights();
    through_softmax(r, b.p + h * r.weights(), ds);
    add_to_keys(r, ds, b.queries + h * r.rows(), b.dkeys + h * row_end * r.padded_width);
    if (!dq) continue;
    weigh_values(r, ds, b.keys + h * row_end * r.padded_width, b.dqueries);
    unpack_head(r, valid, b.dqueries, r.scale, dq + h * r.width);
  }
}

template <class T>
void write_heads(const Reattended& r, const float* rows, T* to) {
  if (!to) return;
  for (std::int64_t h = 0; h < r.heads; ++h)
    unpack_head(r, r.seq, rows + h * round_up(r.seq, tile_rows) * r.padded_width, 1, to + h * r.width);
}

/// `sums` begin as zeros.
template <class T>
void backward(const Reattended& r, const Operands<T>& o, std::int64_t sequence, ParameterSums sums) {
  const Buffers b = buffers_of(r);
  const HeadMixing by = pack_mixing(r, o.mixing, o.gain, o.bias, b.mixing);
  const std::int64_t token = sequence * r.seq * r.inner, row_end = round_up(r.seq, tile_rows);
  pack_columns(r, o.k + token, b.key_columns);
  pack_columns(r, o.v + token, b.value_columns);
  pack_heads(r, r.seq, row_end, o.k + token, 1, b.keys);
  for (float* rows : {b.dkeys, b.dvalues}) std::fill_n(rows, r.heads * row_end * r.padded_width, 0.0F);
  for (std::int64_t first = 0; first < r.seq; first += tile_rows) {
    const std::int64_t valid = r.valid(first), at = token + first * r.inner;
    pack_heads(r, valid, tile_rows, o.q + at, r.scale, b.queries);
    pack_heads(r, valid, tile_rows, o.dy + at, 1, b.dy);
    weigh_again(r, by, b, valid, o.log_sum_exp + sequence * r.heads * r.seq + first);
    differentiate(r, by, b, valid, o.dq ? o.dq + at : nullptr, sums);
  }
  write_heads(r, b.dkeys, o.dk ? o.dk + token : nullptr);
  write_heads(r, b.dvalues, o.dv ? o.dv + token : nullptr);
}

/// to[i] = (accumulate ? to[i] : 0) + Σ over sequences, in order; unless it is absent.
template <class To>
void total(std::int64_t sequences, std::int64_t count, std::int64_t stride, const float* parts, bool accumulate,
           To* to) {
  if (!to) return;
  for (std::int64_t i = 0; i < count; ++i) {
    float sum = accumulate ? static_cast<float>(to[i]) : 0.0F;
    for (std::int64_t sequence = 0; sequence < sequences; ++sequence) sum += parts[sequence * stride + i];
    to[i] = static_cast<To>(sum);
  }
}

}  // namespace

void reattention_backward(const Reattention& o, bool accumulate, Const dy, Const q, Const k, Const v, Const mixing,
                          Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dmixing, Mut dgain,
                          Mut dbias) {
  const Reattended r(o);
  const std::int64_t stride = parameter_numbers(r);
  std::vector<float> parts(static_cast<std::size_t>(o.batch * stride));
  by_number(dy.dtype, [&]<class T>(T) {
    const Operands<T> operands{as<T>(dy),     as<T>(q),    as<T>(k),    as<T>(v),
                               as<T>(mixing), as<T>(gain), as<T>(bias), as<float>(log_sum_exp),
                               as<T>(dq),     as<T>(dk),   as<T>(dv)};
    share(o.batch, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t sequence = begin; sequence < end; ++sequence)
        backward(r, operands, sequence, sums_at(r, parts.data() + sequence * stride));
    });
    const ParameterSums first = sums_at(r, parts.data());
    by_result_type<T>(type_of_present(dmixing, dgain, type_of_present(dbias, {}, dy.dtype)), [&]<class Grad>(Grad) {
      total(o.batch, o.heads * o.heads, stride, first.mixing, accumulate, as<Grad>(dmixing));
      total(o.batch, o.heads, stride, first.gain, accumulate, as<Grad>(dgain));
      total(o.batch, o.heads, stride, first.bias, accumulate, as<Grad>(dbias));
    });
  });
}

}  // namespace foreshard::kernels::cpu
