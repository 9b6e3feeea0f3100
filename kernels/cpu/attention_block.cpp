#include "kernels/cpu/attention_block.hpp"

namespace foreshard::kernels::cpu {

template <class Word>
void transpose(std::int64_t words, const Word* from, Word* to) {
  for (std::int64_t i = 0; i < block; i += lanes) {
    for (std::int64_t d = 0; d < words; ++d) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) to[d * block + i + lane] = from[(i + lane) * words + d];
    }
  }
}

template <class Word>
void multiply_transposed(const Pair& pair, const Head& head, const Word* keys, const Word* queries, float* scores) {
  const std::int64_t words = head.padded_width / numbers_in<Word>;
  for (std::int64_t key = 0; key < pair.key_end(); key += tile_rows) {
    const std::int64_t first = pair.first_vector(key);
    multiply<Word>(pair.query_vectors() - first, words, {keys + key * words, words, 1},
                   {queries + first * lanes, block}, {scores + key * block + first * lanes, block}, false);
  }
}

void add_slope(const Pair& pair, float slope, float* scores) {
  const Vec lane = __builtin_convertvector(lane_numbers, Vec);
  for (std::int64_t key = 0; key < pair.key_end(); ++key) {
    for (std::int64_t v = pair.first_vector(key); v < pair.query_vectors(); ++v) {
      float* const at = scores + key * block + v * lanes;
      store(at, load(at) + slope * (static_cast<float>(pair.ahead + key - v * lanes) - lane));
    }
  }
}

void add_bias(const Pair& pair, const Head& head, const float* bias, float* scores) {
  for (std::int64_t key = 0; key < pair.key_end(); ++key) {
    const float* const of_key = bias + head.padded_seq - 1 - pair.ahead - key;
    for (std::int64_t v = pair.first_vector(key); v < pair.query_vectors(); ++v) {
      float* const at = scores + key * block + v * lanes;
      store(at, load(at) + load(of_key + v * lanes));
    }
  }
}

void add_to_bias(const Pair& pair, const Head& head, const float* scores, float* sums) {
  for (std::int64_t key = 0; key < pair.key_end(); ++key) {
    float* const of_key = sums + head.padded_seq - 1 - pair.ahead - key;
    for (std::int64_t v = pair.first_vector(key); v < pair.query_vectors(); ++v)
      store(of_key + v * lanes, load(of_key + v * lanes) + load(scores + key * block + v * lanes));
  }
}

template <class Word>
void add_to_queries(const Pair& pair, const Head& head, const Word* scores, const Word* values, float* sums) {
  for (std::int64_t query = 0; query < pair.query_end(); query += tile_rows) {
    multiply<Word>(head.vectors(), pair.keys_seen(query + tile_rows) / numbers_in<Word>, {scores + query, 1, block},
                   {values, head.padded_width}, {sums + query * head.padded_width, head.padded_width}, true);
  }
}

template <class Word>
void add_to_keys(const Pair& pair, const Head& head, const Word* scores, const Word* values, float* sums) {
  constexpr std::int64_t numbers = numbers_in<Word>, words = block / numbers;
  for (std::int64_t key = 0; key < pair.key_end(); key += tile_rows) {
    const std::int64_t first = pair.first_vector(key) * lanes;
    multiply<Word>(head.vectors(), (pair.query_end() - first) / numbers,
                   {scores + key * words + first / numbers, words, 1},
                   {values + first / numbers * head.padded_width, head.padded_width},
                   {sums + key * head.padded_width, head.padded_width}, true);
  }
}

template void transpose(std::int64_t, const float*, float*);
template void multiply_transposed(const Pair&, const Head&, const float*, const float*, float*);
template void add_to_queries(const Pair&, const Head&, const float*, const float*, float*);
template void add_to_keys(const Pair&, const Head&, const float*, const float*, float*);
template void transpose(std::int64_t, const BFloat16Pair*, BFloat16Pair*);
template void multiply_transposed(const Pair&, const Head&, const BFloat16Pair*, const BFloat16Pair*, float*);
template void add_to_queries(const Pair&, const Head&, const BFloat16Pair*, const BFloat16Pair*, float*);
template void add_to_keys(const Pair&, const Head&, const BFloat16Pair*, const BFloat16Pair*, float*);

}  // namespace foreshard::kernels::cpu
