#include <algorithm>
#include <cstring>

#include "kernels/cpu/kernels.hpp"
#include "kernels/exact_sum.hpp"

namespace foreshard::kernels::cpu {
namespace {

typedef float Leaf __attribute__((vector_size(32)));
typedef double Eight __attribute__((vector_size(64)));
typedef double Four __attribute__((vector_size(32)));

Leaf leaf_at(const float* x) {
  Leaf leaf;
  std::memcpy(&leaf, x, sizeof leaf);
  return leaf;
}
template <class T>
Leaf leaf_at(const T* x) {
  Leaf leaf;
  for (int i = 0; i < 8; ++i) leaf[i] = static_cast<float>(x[i]);
  return leaf;
}

/// `leaf_of_squares`, in the same order.
template <class T>
double leaf_sum(const T* x) {
  const Leaf leaf = leaf_at(x);
  const Eight wide = __builtin_convertvector(leaf, Eight), s = wide * wide;
  const Four half = __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
  return (half[0] + half[2]) + (half[1] + half[3]);
}

constexpr int chains = 4;                                     // sums side by side: an addition waits for the last
constexpr std::int64_t carry_leaves = std::int64_t{1} << 26;  // of a chain; far fewer than its words hold

template <class T>
void add_whole_leaves(std::int64_t leaves, const T* x, ExactWords sum) {
  std::int64_t words[chains][ExactSum::words] = {};
  std::int64_t leaf = 0;
  for (; leaf + chains <= leaves; leaf += chains) {
    for (int c = 0; c < chains; ++c) add_exact_here(words[c], leaf_sum(x + 8 * (leaf + c)));
  }
  for (; leaf < leaves; ++leaf) add_exact_here(words[0], leaf_sum(x + 8 * leaf));
  for (auto& chain : words) {
    carry_exact(chain);
    for (int w = 0; w < ExactSum::words; ++w) sum[w] += chain[w];
  }
  carry_exact(sum);
}

template <class T>
void add_leaves(std::int64_t count, const T* x, ExactWords sum) {
  const std::int64_t leaves = count / 8;
  for (std::int64_t leaf = 0; leaf < leaves; leaf += carry_leaves) {
    add_whole_leaves(std::min(carry_leaves, leaves - leaf), x + 8 * leaf, sum);
  }
  if (count % 8 != 0) add_exact(sum, last_leaf_of_squares(x + 8 * leaves, count % 8));
  carry_exact(sum);
}

}  // namespace

void add_squares(std::int64_t count, Const x, ExactWords sum) {
  by_number(x.dtype, [&]<class T>(T) { add_leaves(count, as<T>(x), sum); });
}

}  // namespace foreshard::kernels::cpu
