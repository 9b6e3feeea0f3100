#include "kernels/powers.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/cpu/kernels.hpp"

namespace foreshard::kernels::cpu {
namespace {

typedef float Leaf __attribute__((vector_size(32)));
typedef std::int32_t LeafBits __attribute__((vector_size(32)));
typedef double Eight __attribute__((vector_size(64)));
typedef double Four __attribute__((vector_size(32)));

constexpr std::int32_t magnitude_mask = INT32_MAX;

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

/// `leaf_of_powers`, in the same order.
template <int power, class T>
double leaf_sum(const T* x) {
  Leaf leaf = leaf_at(x);
  if constexpr (power != 2) leaf = (Leaf)((LeafBits)leaf & magnitude_mask);  // a square has lost its sign anyway
  const Eight s = power_of<power>(__builtin_convertvector(leaf, Eight));
  const Four half = __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
  return (half[0] + half[2]) + (half[1] + half[3]);
}

constexpr int chains = 4;                                     // sums side by side: an addition waits for the last
constexpr std::int64_t carry_leaves = std::int64_t{1} << 26;  // of a chain; far fewer than its words hold

template <int power, class T>
void add_whole_leaves(std::int64_t leaves, const T* x, ExactWords sum) {
  std::int64_t words[chains][ExactSum::words] = {};
  std::int64_t leaf = 0;
  for (; leaf + chains <= leaves; leaf += chains) {
    for (int c = 0; c < chains; ++c) add_exact_here(words[c], leaf_sum<power>(x + 8 * (leaf + c)));
  }
  for (; leaf < leaves; ++leaf) add_exact_here(words[0], leaf_sum<power>(x + 8 * leaf));
  for (auto& chain : words) {
    carry_exact(chain);
    for (int w = 0; w < ExactSum::words; ++w) sum[w] += chain[w];
  }
  carry_exact(sum);
}

template <int power, class T>
void add_leaves(std::int64_t count, const T* x, ExactWords sum) {
  const std::int64_t leaves = count / 8;
  for (std::int64_t leaf = 0; leaf < leaves; leaf += carry_leaves) {
    add_whole_leaves<power>(std::min(carry_leaves, leaves - leaf), x + 8 * leaf, sum);
  }
  if (count % 8 != 0) add_exact(sum, last_leaf_of_powers<power>(x + 8 * leaves, count % 8));
  carry_exact(sum);
}

/// The bits of the largest |x|, as those of a float.
template <class T>
std::int32_t largest_bits(std::int64_t count, const T* x) {
  std::int32_t highest = 0;
#pragma omp simd reduction(max : highest)
  for (std::int64_t i = 0; i < count; ++i)
    highest = std::max(highest, std::bit_cast<std::int32_t>(static_cast<float>(x[i])) & magnitude_mask);
  return highest;
}

}  // namespace

void add_powers(int power, std::int64_t count, Const x, ExactWords sum) {
  by_number(x.dtype, [&]<class T>(T) {
    const T* data = as<T>(x);
    power == 1   ? add_leaves<1>(count, data, sum)
    : power == 2 ? add_leaves<2>(count, data, sum)
                 : add_leaves<3>(count, data, sum);
  });
}

void max_magnitude(std::int64_t count, Const x, std::int64_t& largest) {
  by_number(x.dtype, [&]<class T>(T) {
    const auto highest = std::bit_cast<float>(largest_bits(count, as<T>(x)));
    largest = std::max(largest, magnitude_bits(static_cast<double>(highest)));
  });
}

}  // namespace foreshard::kernels::cpu
