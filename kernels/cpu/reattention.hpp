#pragma once
#include "kernels/cpu/attention_words.hpp"
#include "kernels/cpu/kernels.hpp"

/// What re-attention and its backward share: eight queries of one sequence at a time, all heads of which are in cache.
/// Matrices of weights are [heads, 8, padded_seq], so that what all heads have for a query and a key lies at one place
/// of each head's.
namespace foreshard::kernels::cpu {

/// Of one sequence, padded with zeros to whole vectors and tiles.
struct Reattended {
  std::int64_t seq, width, heads, inner;
  std::int64_t padded_seq, padded_width, padded_heads;
  float scale, epsilon;

  explicit Reattended(const Reattention& o)
      : seq(o.seq),
        width(o.width),
        heads(o.heads),
        inner(o.heads * o.width),
        padded_seq(round_up(o.seq, lanes)),
        padded_width(round_up(o.width, lanes)),
        padded_heads(round_up(o.heads, tile_rows)),
        scale(static_cast<float>(o.scale())),
        epsilon(o.epsilon) {}

  std::int64_t key_vectors() const { return padded_seq / lanes; }
  std::int64_t width_vectors() const { return padded_width / lanes; }
  std::int64_t weights() const { return tile_rows * padded_seq; }  ///< of a head
  std::int64_t rows() const { return tile_rows * padded_width; }   ///< numbers of eight queries of a head
  std::int64_t valid(std::int64_t first) const { return std::min(tile_rows, seq - first); }
};

/// [padded_heads, padded_heads], and by head.
struct HeadMixing {
  const float *mixing, *gain, *bias;
};

template <class T>
HeadMixing pack_mixing(const Reattended& r, const T* mixing, const T* gain, const T* bias, float* to) {
  float *const gains = to + r.padded_heads * r.padded_heads, *const biases = gains + r.padded_heads;
  pack(r.heads, r.padded_heads, r.heads, r.padded_heads, mixing, r.heads, 1, to);
  pack(1, 1, r.heads, r.padded_heads, gain, r.heads, 1, gains);
  pack(1, 1, r.heads, r.padded_heads, bias, r.heads, 1, biases);
  return {to, gains, biases};
}
inline std::int64_t mixing_numbers(const Reattended& r) { return (r.padded_heads + 2) * r.padded_heads; }

/// to[h, d, j] = from[j, h, d]: rows of a sequence's tokens as columns of each head.
template <class T>
void pack_columns(const Reattended& r, const T* from, float* to) {
  for (std::int64_t h = 0; h < r.heads; ++h, from += r.width, to += r.width * r.padded_seq)
    for (std::int64_t d = 0; d < r.width; ++d) {
      float* const column = to + d * r.padded_seq;
      for (std::int64_t j = 0; j < r.seq; ++j) column[j] = static_cast<float>(from[j * r.inner + d]);
      std::fill(column + r.seq, column + r.padded_seq, 0.0F);
    }
}

/// to[h, j, d] = scale·from[j, h, d] of `rows` tokens, up to `padded_rows` and padded_width.
template <class T>
void pack_heads(const Reattended& r, std::int64_t rows, std::int64_t padded_rows, const T* from, float scale,
                float* to) {
  for (std::int64_t h = 0; h < r.heads; ++h)
    pack(rows, padded_rows, r.width, r.padded_width, from + h * r.width, r.inner, scale,
         to + h * padded_rows * r.padded_width);
}

/// The other way, of a head.
template <class T>
void unpack_head(const Reattended& r, std::int64_t rows, const float* from, float scale, T* to) {
  for (std::int64_t i = 0; i < rows; ++i)
    map(
        r.width, to + i * r.inner, [scale](Vec v) { return v * scale; }, from + i * r.padded_width);
}

/// products[query, key] = Σ_d rows[query, d]·columns[d, key] of a head.
inline void multiply_columns(const Reattended& r, const float* rows, const float* columns, float* products) {
  multiply<float>(r.key_vectors(), r.width, {rows, r.padded_width, 1}, {columns, r.padded_seq},
                  {products, r.padded_seq}, false);
}

/// sums[query, d] = Σ_key weights[query, key]·values[key, d] of a head.
inline void weigh_values(const Reattended& r, const float* weights, const float* values, float* sums) {
  multiply<float>(r.width_vectors(), r.seq, {weights, r.padded_seq, 1}, {values, r.padded_width},
                  {sums, r.padded_width}, false);
}

/// Scores of a query with a head's keys to probabilities e^(score − log_sum_exp); zero behind the last key.
void find_probabilities(const Reattended& r, float log_sum_exp, float* scores);
float log_sum_exp_of(const Reattended& r, const float* scores);

/// mixed[g] = Σ_h p[h]·mixing[h, g], for all queries and keys.
void mix(const Reattended& r, const HeadMixing& by, const float* p, float* mixed);

/// Mixed weights to what the norm over heads makes of them, gain and bias left out; rstd [8, padded_seq].
void normalize_heads(const Reattended& r, float* mixed, float* rstd);

/// n = normed·gain + bias of head g.
void finish_weights(const Reattended& r, const HeadMixing& by, std::int64_t g, const float* normed, float* n);

}  // namespace foreshard::kernels::cpu
