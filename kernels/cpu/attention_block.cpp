#include "kernels/cpu/attention_block.hpp"

namespace foreshard::kernels::cpu {

void transpose(std::int64_t padded_width, const float* from, float* to) {
  for (std::int64_t i = 0; i < block; i += lanes) {
    for (std::int64_t d = 0; d < padded_width; ++d) {
      for (std::int64_t lane = 0; lane < lanes; ++lane) to[d * block + i + lane] = from[(i + lane) * padded_width + d];
    }
  }
}

void multiply_transposed(const Pair& pair, const Head& head, const float* keys, const float* queries, float* scores) {
  for (std::int64_t key = 0; key < pair.key_end(); key += tile_rows) {
    const std::int64_t first = pair.first_vector(key);
    multiply(pair.query_vectors() - first, head.padded_width, {keys + key * head.padded_width, head.padded_width, 1},
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

void add_to_queries(const Pair& pair, const Head& head, const float* scores, const float* values, float* sums) {
  for (std::int64_t query = 0; query < pair.query_end(); query += tile_rows) {
    multiply(head.vectors(), pair.keys_seen(query + tile_rows), {scores + query, 1, block}, {values, head.padded_width},
             {sums + query * head.padded_width, head.padded_width}, true);
  }
}

void add_to_keys(const Pair& pair, const Head& head, const float* scores, const float* values, float* sums) {
  for (std::int64_t key = 0; key < pair.key_end(); key += tile_rows) {
    const std::int64_t first = pair.first_vector(key) * lanes;
    multiply(head.vectors(), pair.query_end() - first, {scores + key * block + first, block, 1},
             {values + first * head.padded_width, head.padded_width},
             {sums + key * head.padded_width, head.padded_width}, true);
  }
}

}  // namespace foreshard::kernels::cpu
