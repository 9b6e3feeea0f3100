#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/backend.hpp"
#include "kernels/cpu/scratch.hpp"
#include "kernels/cpu/tile.hpp"
#include "kernels/qkv.hpp"

/// What the forward and the backward of attention share: where a head lies, and blocks of it, copied and padded with
/// zeros.
///
/// Scores of one block of queries and one block of keys are kept transposed, [key, query], so that a vector holds
/// sixteen queries and the softmax needs no sum across lanes.
namespace foreshard::kernels::cpu {

inline constexpr std::int64_t block = 64;  // queries and keys of a block
inline constexpr std::int64_t block_vectors = block / lanes;

inline std::int64_t round_up(std::int64_t n, std::int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

/// The part of the score matrix between one block of queries and one of keys.
struct Pair {
  std::int64_t queries, keys;  // valid ones; only the last block has fewer than 64
  bool diagonal;               // of causal attention: query i sees keys 0…i of this block
  std::int64_t ahead;          // the first key's position − the first query's
  std::int64_t window_end;     // within a window: query i sees key j of this block only if i < j + window_end

  bool cut_by_window() const { return window_end < queries; }
  std::int64_t query_vectors() const { return round_up(queries, lanes) / lanes; }
  std::int64_t query_end() const { return round_up(queries, tile_rows); }
  std::int64_t key_end() const { return diagonal ? query_end() : round_up(keys, tile_rows); }
  /// The first vector of queries that sees key `key`.
  std::int64_t first_vector(std::int64_t key) const { return diagonal ? key / lanes : 0; }
  /// Keys from here on are seen by none of the queries before `end`.
  std::int64_t keys_seen(std::int64_t end) const { return diagonal ? end : key_end(); }
};

/// One head of one sequence: where it begins in y and in log_sum_exp, and the extents of its padded blocks.
struct Head {
  std::int64_t seq, width, inner;  // inner = heads·width
  std::int64_t sequence, head;
  std::int64_t y_at, lse_at;
  std::int64_t padded_width, padded_seq;
  bool causal;
  std::int64_t window;  // most keys of a query; as long as the sequence if there is none
  float scale, slope;

  /// `index` counts heads of queries, sequence by sequence.
  Head(const Attention& o, std::int64_t index)
      : seq(o.seq),
        width(o.width),
        inner(o.heads * o.width),
        sequence(index / o.heads),
        head(index % o.heads),
        y_at(sequence * o.seq * inner + head * o.width),
        lse_at(index * o.seq),
        padded_width(round_up(o.width, lanes)),
        padded_seq(round_up(o.seq, block)),
        causal(o.causal),
        window(o.window > 0 ? std::min(o.window, o.seq) : o.seq),
        scale(static_cast<float>(o.scale())),
        slope(static_cast<float>(o.slope(head))) {}

  std::int64_t vectors() const { return padded_width / lanes; }
  std::int64_t blocks() const { return padded_seq / block; }
  std::int64_t valid(std::int64_t i) const { return std::min(block, seq - i * block); }
  /// Block i of queries sees the blocks of keys before this one.
  std::int64_t blocks_seen(std::int64_t i) const { return causal ? i + 1 : blocks(); }
  /// The first of these; those before it are behind the window of all its queries.
  std::int64_t first_block_seen(std::int64_t i) const {
    return causal ? std::max<std::int64_t>(0, i * block - window + 1) / block : 0;
  }
  Pair pair(std::int64_t i, std::int64_t j) const {
    const std::int64_t ahead = (j - i) * block;
    return {valid(i), valid(j), causal && i == j, ahead, causal ? ahead + window : block};
  }
  /// Numbers that hold a bias for each distance of a query and a key, padding included.
  std::int64_t bias_numbers() const { return 2 * padded_seq; }
};

/// to[i, d] = scale·from[i·stride + d] for i < rows, d < width; zero up to [padded_rows, padded_width].
template <class T>
void pack(std::int64_t rows, std::int64_t padded_rows, std::int64_t width, std::int64_t padded_width, const T* from,
          std::int64_t stride, float scale, float* to) {
  for (std::int64_t i = 0; i < rows; ++i) {
    float* row = to + i * padded_width;
    for (std::int64_t d = 0; d < width; d += lanes) __builtin_prefetch(from + (i + 16) * stride + d);
    map(
        width, row, [scale](Vec v) { return v * scale; }, from + i * stride);
    std::fill(row + width, row + padded_width, 0.0F);
  }
  std::fill(to + rows * padded_width, to + padded_rows * padded_width, 0.0F);
}

/// to[d, i] = from[i, d]: from is [64, words], to is [words, 64].
template <class Word>
void transpose(std::int64_t words, const Word* from, Word* to);

/// scores[key, query] = Σ_d keys[key, d]·queries[d, query], keys and transposed queries in rows, padded to
/// padded_width; only the part that the pair sees.
template <class Word>
void multiply_transposed(const Pair&, const Head&, const Word* keys, const Word* queries, float* scores);

/// scores[key, query] += slope·(key − query), by their positions.
void add_slope(const Pair&, float slope, float* scores);

/// to[query − key + padded_seq − 1] = the head's element for that distance of `bias`; zero for distances that only
/// padding has. Distances grow with the query, so that a vector of queries is a vector of biases.
template <class T>
void pack_bias(const Head& head, const T* bias, float* to) {
  std::fill_n(to, head.bias_numbers(), 0.0F);
  const T* const of_head = bias + head.head * (2 * head.seq - 1);
  for (std::int64_t d = 1 - head.seq; d < head.seq; ++d)
    to[d + head.padded_seq - 1] = static_cast<float>(of_head[head.seq - 1 - d]);
}

/// scores[key, query] += what pack_bias made.
void add_bias(const Pair&, const Head&, const float* bias, float* scores);

/// sums[query − key + padded_seq − 1] += scores[key, query].
void add_to_bias(const Pair&, const Head&, const float* scores, float* sums);

/// sums[query, d] += Σ_key scores[key, query]·values[key, d], both in stacks.
template <class Word>
void add_to_queries(const Pair&, const Head&, const Word* scores, const Word* values, float* sums);

/// sums[key, d] += Σ_query scores[key, query]·values[query, d], scores in rows and values in stacks.
template <class Word>
void add_to_keys(const Pair&, const Head&, const Word* scores, const Word* values, float* sums);

inline constexpr IntVec lane_numbers = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/// The lanes whose query sees the key; `ahead` = key − first query of the vector.
inline IntVec seen(std::int64_t ahead) { return lane_numbers >= static_cast<std::int32_t>(ahead); }

/// The lanes in whose window the key is; `end` = the first query that no longer sees it − first query of the vector.
inline IntVec in_window(std::int64_t end) { return lane_numbers < static_cast<std::int32_t>(end); }

}  // namespace foreshard::kernels::cpu
