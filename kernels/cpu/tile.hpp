#pragma once
#include "kernels/cpu/bf16_pair.hpp"

/// Products of small matrices that are in cache, for the blocks of attention: C[8, 16·vectors] = (accumulate ? C : 0) +
/// A·B. A and B consist of words of 32 bits, floats or pairs of bf16 numbers; C of floats. The product of two pairs is
/// the sum of two products, so that the depth counts words.
namespace foreshard::kernels::cpu {

/// Numbers in a word.
template <class Word>
inline constexpr std::int64_t numbers_in = 1;
template <>
inline constexpr std::int64_t numbers_in<BFloat16Pair> = 2;

/// A[i, l] is data[i·row + l·depth]: a transposed matrix is another pair of strides.
template <class Word>
struct Left {
  const Word* data;
  std::int64_t row, depth;
};
/// B[l, j] is data[l·depth + j].
template <class Word>
struct Right {
  const Word* data;
  std::int64_t depth;
};
/// C[i, j] is data[i·row + j].
struct Target {
  float* data;
  std::int64_t row;
};

inline constexpr std::int64_t tile_rows = 8;

/// `rows`·`vectors` sums are held in registers for the whole depth; the loops over them are unrolled for that.
template <int rows, int vectors, class Word>
void tile(std::int64_t depth, Left<Word> a, Right<Word> b, Target c, bool accumulate) {
  Vec s[rows][vectors];
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) s[i][v] = accumulate ? load(c.data + i * c.row + v * lanes) : Vec{};
  }
  for (std::int64_t l = 0; l < depth; ++l) {
    decltype(load(b.data)) right[vectors];
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) right[v] = load(b.data + l * b.depth + v * lanes);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const auto left = broadcast(a.data[i * a.row + l * a.depth]);
#pragma GCC unroll 8
      for (int v = 0; v < vectors; ++v) s[i][v] = fma(left, right[v], s[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < rows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < vectors; ++v) store(c.data + i * c.row + v * lanes, s[i][v]);
  }
}

/// Eight rows by any number of vectors.
template <class Word>
void multiply(std::int64_t vectors, std::int64_t depth, Left<Word> a, Right<Word> b, Target c, bool accumulate);

}  // namespace foreshard::kernels::cpu
