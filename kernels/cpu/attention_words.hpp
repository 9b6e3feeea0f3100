#pragma once
#include <limits>
#include <utility>

#include "kernels/cpu/attention_block.hpp"
#include "kernels/cpu/exp.hpp"

/// The two arithmetics of attention. Its blocks consist of words of 32 bits: floats, into which numbers of any type are
/// widened, or pairs of bf16 numbers, which the processor multiplies two by two into sums in float. Scores, sums and
/// statistics are floats in both; pairs have probabilities and the gradients of scores rounded to bf16 before they are
/// multiplied again.
///
/// A block lies in *rows*, whose words hold neighbours in a row, for products along rows, [rows, padded_width /
/// numbers_in]; or in *stacks*, whose words hold neighbours in a column, for products along columns, [rows /
/// numbers_in, padded_width]. Of floats both are the same. All have as many words.
namespace foreshard::kernels::cpu {

inline constexpr float hidden_score = -std::numeric_limits<float>::infinity();

template <class Word>
inline constexpr bool rows_are_stacks = std::is_same_v<Word, float>;

/// Words of a padded row.
template <class Word>
std::int64_t row_words(const Head& head) {
  return head.padded_width / numbers_in<Word>;
}

/// Queries are scaled if words are floats, scores if they are pairs, as scaling would round a number once more.
template <class Word>
inline constexpr bool scaled_queries = std::is_same_v<Word, float>;

/// Rows of a head as words, zero up to `padded_rows` and padded_width.
template <class T>
void pack_rows(std::int64_t rows, std::int64_t padded_rows, const Head& head, const T* from, std::int64_t stride,
               float* to) {
  pack(rows, padded_rows, head.width, head.padded_width, from, stride, 1, to);
}
void pack_rows(std::int64_t rows, std::int64_t padded_rows, const Head&, const BFloat16* from, std::int64_t stride,
               BFloat16Pair* to);

/// The same for a block of queries.
template <class T>
void pack_queries(std::int64_t rows, const Head& head, const T* from, std::int64_t stride, float* to) {
  pack(rows, block, head.width, head.padded_width, from, stride, head.scale, to);
}
inline void pack_queries(std::int64_t rows, const Head& head, const BFloat16* from, std::int64_t stride,
                         BFloat16Pair* to) {
  pack_rows(rows, block, head, from, stride, to);
}

/// The same as stacks; padded_rows is even.
template <class T>
void pack_stacks(std::int64_t rows, std::int64_t padded_rows, const Head& head, const T* from, std::int64_t stride,
                 float* to) {
  pack_rows(rows, padded_rows, head, from, stride, to);
}
void pack_stacks(std::int64_t rows, std::int64_t padded_rows, const Head&, const BFloat16* from, std::int64_t stride,
                 BFloat16Pair* to);

/// scores *= scale.
void scale_scores(const Pair&, float scale, float* scores);

/// What scores have still to be multiplied by when they are read.
template <class Word>
float score_factor(const Head& head, bool biased) {
  return scaled_queries<Word> || head.slope != 0 || biased ? 1 : head.scale;
}

/// Products of keys and queries become scores, but for score_factor. `bias` as pack_bias makes it, or null.
template <class Word>
void finish_scores(const Pair& pair, const Head& head, const float* bias, float* scores) {
  if (!scaled_queries<Word> && (head.slope != 0 || bias)) scale_scores(pair, head.scale, scores);
  if (head.slope != 0) add_slope(pair, head.slope, scores);
  if (bias) add_bias(pair, head, bias, scores);
}

/// e^(factor·score − shift), as precise as probabilities need it that are kept in such words. Of floats the factor
/// is 1.
template <class Word>
Vec probability(Vec score, float factor, Vec shift) {
  if constexpr (std::is_same_v<Word, float>)
    return exp(score - shift);
  else
    return exp_for_bf16(score * factor - shift);
}

/// Two neighbouring rows of probabilities, key and key + 1, in stacks.
inline void put_stack(float* p, std::int64_t key, Vec even, Vec odd) {
  store(p + key * block, even);
  store(p + (key + 1) * block, odd);
}
inline void put_stack(BFloat16Pair* p, std::int64_t key, Vec even, Vec odd) {
  store(p + key / 2 * block, stacked(rounded_rows(even, odd)));
}

/// Cuts a thread's scratch memory into arrays.
class Cutter {
 public:
  /// Calls make(cutter) twice, first to see how much it takes, and returns what it makes of memory.
  template <class Make>
  static auto cut(Make make) {
    Cutter measure(nullptr);
    make(measure);
    Cutter cutter(thread_scratch().of<float>(static_cast<std::size_t>(measure.taken_)));
    return make(cutter);
  }

  template <class Word>
  Word* take(std::int64_t words) {
    const std::int64_t at = std::exchange(taken_, taken_ + words);
    return memory_ ? reinterpret_cast<Word*>(memory_ + at) : nullptr;
  }

 private:
  explicit Cutter(float* memory) : memory_(memory) {}
  float* memory_;
  std::int64_t taken_ = 0;
};

}  // namespace foreshard::kernels::cpu
