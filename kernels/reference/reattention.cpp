#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/reference/dot.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

using Numbers = std::vector<double>;

template <class T>
struct Inputs {
  const T *q, *k, *v, *mixing, *gain, *bias;
};

/// One query of a sequence, and what all heads make of its keys: probabilities, and these mixed and normalised, each
/// [heads, seq].
template <class T>
struct Query {
  const Reattention& o;
  const Inputs<T>& in;
  std::int64_t first, row;  // of the sequence, and of the query, among all tokens
  Numbers p, normed, rstd;

  Query(const Reattention& shape, const Inputs<T>& inputs, std::int64_t sequence, std::int64_t i)
      : o(shape),
        in(inputs),
        first(sequence * o.seq),
        row(first + i),
        p(o.heads * o.seq),
        normed(o.heads * o.seq),
        rstd(o.seq) {}

  /// Of the query itself, and of key j.
  std::int64_t at(std::int64_t h) const { return (row * o.heads + h) * o.width; }
  std::int64_t at(std::int64_t h, std::int64_t j) const { return ((first + j) * o.heads + h) * o.width; }
  double mixing(std::int64_t h, std::int64_t g) const { return static_cast<double>(in.mixing[h * o.heads + g]); }
  double gain(std::int64_t g) const { return static_cast<double>(in.gain[g]); }
  double weight(std::int64_t g, std::int64_t j) const {
    return normed[g * o.seq + j] * gain(g) + static_cast<double>(in.bias[g]);
  }
  double score(std::int64_t h, std::int64_t j) const { return dot(in.q + at(h), in.k + at(h, j), o.width) * o.scale(); }

  double log_sum_exp(std::int64_t h) const {
    Numbers scores(o.seq);
    for (std::int64_t j = 0; j < o.seq; ++j) scores[j] = score(h, j);
    const double highest = *std::ranges::max_element(scores);
    double total = 0;
    for (const double value : scores) total += std::exp(value - highest);
    return highest + std::log(total);
  }

  void weigh(std::int64_t h, double log_sum) {
    for (std::int64_t j = 0; j < o.seq; ++j) p[h * o.seq + j] = std::exp(score(h, j) - log_sum);
  }

  /// When all heads are weighed.
  void mix() {
    for (std::int64_t j = 0; j < o.seq; ++j) normalize(j, mixed(j));
  }

 private:
  Numbers mixed(std::int64_t j) const {
    Numbers m(o.heads);
    for (std::int64_t g = 0; g < o.heads; ++g)
      for (std::int64_t h = 0; h < o.heads; ++h) m[g] += p[h * o.seq + j] * mixing(h, g);
    return m;
  }

  void normalize(std::int64_t j, const Numbers& m) {
    const auto heads = static_cast<double>(o.heads);
    double mean = 0, variance = 0;
    for (const double value : m) mean += value / heads;
    for (const double value : m) variance += (value - mean) * (value - mean) / heads;
    rstd[j] = 1 / std::sqrt(variance + static_cast<double>(o.epsilon));
    for (std::int64_t g = 0; g < o.heads; ++g) normed[g * o.seq + j] = (m[g] - mean) * rstd[j];
  }
};

template <class T, class F>
void for_queries(const Reattention& o, const Inputs<T>& in, F f) {
  for (std::int64_t sequence = 0; sequence < o.batch; ++sequence)
    for (std::int64_t i = 0; i < o.seq; ++i) {
      Query<T> query(o, in, sequence, i);
      f(query, sequence * o.heads * o.seq + i);
    }
}

template <class T>
void forward(const Reattention& o, const Inputs<T>& in, T* y, Computed<T>* log_sum_exp) {
  for_queries(o, in, [&](Query<T>& query, std::int64_t lse_at) {
    for (std::int64_t h = 0; h < o.heads; ++h) {
      const double log_sum = query.log_sum_exp(h);
      query.weigh(h, log_sum);
      log_sum_exp[lse_at + h * o.seq] = static_cast<Computed<T>>(log_sum);
    }
    query.mix();
    for (std::int64_t g = 0; g < o.heads; ++g)
      for (std::int64_t d = 0; d < o.width; ++d) {
        double sum = 0;
        for (std::int64_t j = 0; j < o.seq; ++j)
          sum += query.weight(g, j) * static_cast<double>(in.v[query.at(g, j) + d]);
        y[query.at(g) + d] = static_cast<T>(sum);
      }
  });
}

struct Gradients {
  Numbers q, k, v, mixing, gain, bias;

  explicit Gradients(const Reattention& o)
      : q(o.batch * o.seq * o.heads * o.width),
        k(q.size()),
        v(q.size()),
        mixing(o.heads * o.heads),
        gain(o.heads),
        bias(o.heads) {}
};

/// From the weights of one key, by head, to what was normalised: rstd·(g − mean(g) − x̂·mean(g·x̂)), g = dn·gain.
template <class T>
Numbers through_norm(const Query<T>& query, std::int64_t j, const Numbers& dn) {
  const Reattention& o = query.o;
  const auto heads = static_cast<double>(o.heads);
  const auto normed = [&](std::int64_t g) { return query.normed[g * o.seq + j]; };
  double mean_g = 0, mean_gx = 0;
  for (std::int64_t g = 0; g < o.heads; ++g) {
    mean_g += dn[g] * query.gain(g) / heads;
    mean_gx += dn[g] * query.gain(g) * normed(g) / heads;
  }
  Numbers dm(o.heads);
  for (std::int64_t g = 0; g < o.heads; ++g)
    dm[g] = query.rstd[j] * (dn[g] * query.gain(g) - mean_g - normed(g) * mean_gx);
  return dm;
}

/// Adds what one key gives to the gradients of its values and of the parameters; returns those of its probabilities, by
/// head.
template <class T>
Numbers through_weights(const Query<T>& query, std::int64_t j, const T* dy, Gradients& sums) {
  const Reattention& o = query.o;
  Numbers dn(o.heads), dp(o.heads);
  for (std::int64_t g = 0; g < o.heads; ++g) {
    dn[g] = dot(dy + query.at(g), query.in.v + query.at(g, j), o.width);
    for (std::int64_t d = 0; d < o.width; ++d)
      sums.v[query.at(g, j) + d] += query.weight(g, j) * static_cast<double>(dy[query.at(g) + d]);
    sums.gain[g] += dn[g] * query.normed[g * o.seq + j];
    sums.bias[g] += dn[g];
  }
  const Numbers dm = through_norm(query, j, dn);
  for (std::int64_t h = 0; h < o.heads; ++h)
    for (std::int64_t g = 0; g < o.heads; ++g) {
      sums.mixing[h * o.heads + g] += query.p[h * o.seq + j] * dm[g];
      dp[h] += query.mixing(h, g) * dm[g];
    }
  return dp;
}

/// From a head's probabilities to its queries and keys.
template <class T>
void through_softmax(const Query<T>& query, std::int64_t h, const double* dp, Gradients& sums) {
  const Reattention& o = query.o;
  const double *p = query.p.data() + h * o.seq, delta = dot(p, dp, o.seq);
  for (std::int64_t j = 0; j < o.seq; ++j) {
    const double ds = p[j] * (dp[j] - delta) * o.scale();
    for (std::int64_t d = 0; d < o.width; ++d) {
      sums.q[query.at(h) + d] += ds * static_cast<double>(query.in.k[query.at(h, j) + d]);
      sums.k[query.at(h, j) + d] += ds * static_cast<double>(query.in.q[query.at(h) + d]);
    }
  }
}

template <class T>
Gradients backward(const Reattention& o, const Inputs<T>& in, const T* dy, const Computed<T>* log_sum_exp) {
  Gradients sums(o);
  for_queries(o, in, [&](Query<T>& query, std::int64_t lse_at) {
    for (std::int64_t h = 0; h < o.heads; ++h) query.weigh(h, static_cast<double>(log_sum_exp[lse_at + h * o.seq]));
    query.mix();
    Numbers dp(o.heads * o.seq);
    for (std::int64_t j = 0; j < o.seq; ++j) {
      const Numbers of_key = through_weights(query, j, dy, sums);
      for (std::int64_t h = 0; h < o.heads; ++h) dp[h * o.seq + j] = of_key[h];
    }
    for (std::int64_t h = 0; h < o.heads; ++h) through_softmax(query, h, dp.data() + h * o.seq, sums);
  });
  return sums;
}

/// to = (accumulate ? to : 0) + sums, unless it is absent.
template <class T>
void write(const Numbers& sums, bool accumulate, T* to) {
  if (!to) return;
  for (std::size_t i = 0; i < sums.size(); ++i)
    to[i] = static_cast<T>((accumulate ? static_cast<double>(to[i]) : 0.0) + sums[i]);
}

}  // namespace

void reattention(const Reattention& o, Const q, Const k, Const v, Const mixing, Const gain, Const bias, Mut y,
                 Mut log_sum_exp) {
  by_number(y.dtype, [&]<class T>(T) {
    forward<T>(o, {as<T>(q), as<T>(k), as<T>(v), as<T>(mixing), as<T>(gain), as<T>(bias)}, as<T>(y),
               as<Computed<T>>(log_sum_exp));
  });
}

void reattention_backward(const Reattention& o, bool accumulate, Const dy, Const q, Const k, Const v, Const mixing,
                          Const gain, Const bias, Const log_sum_exp, Mut dq, Mut dk, Mut dv, Mut dmixing, Mut dgain,
                          Mut dbias) {
  by_number(dy.dtype, [&]<class T>(T) {
    const Gradients sums = backward<T>(o, {as<T>(q), as<T>(k), as<T>(v), as<T>(mixing), as<T>(gain), as<T>(bias)},
                                       as<T>(dy), as<Computed<T>>(log_sum_exp));
    write(sums.q, false, as<T>(dq));
    write(sums.k, false, as<T>(dk));
    write(sums.v, false, as<T>(dv));
    by_result_type<T>(type_of_present(dmixing, dgain, type_of_present(dbias, {}, dy.dtype)), [&]<class Grad>(Grad) {
      write(sums.mixing, accumulate, as<Grad>(dmixing));
      write(sums.gain, accumulate, as<Grad>(dgain));
      write(sums.bias, accumulate, as<Grad>(dbias));
    });
  });
}

}  // namespace foreshard::kernels::reference
