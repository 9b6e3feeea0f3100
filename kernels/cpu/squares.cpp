#include <cstring>

#include "kernels/cpu/kernels.hpp"
#include "kernels/exact_sum.hpp"

namespace foreshard::kernels::cpu {
namespace {

typedef float Leaf __attribute__((vector_size(32)));
typedef double Eight __attribute__((vector_size(64)));
typedef double Four __attribute__((vector_size(32)));

/// `leaf_of_squares`, in the same order.
double leaf_sum(const float* x) {
  Leaf leaf;
  std::memcpy(&leaf, x, sizeof leaf);
  const Eight wide = __builtin_convertvector(leaf, Eight), s = wide * wide;
  const Four half = __builtin_shufflevector(s, s, 0, 1, 2, 3) + __builtin_shufflevector(s, s, 4, 5, 6, 7);
  return (half[0] + half[2]) + (half[1] + half[3]);
}

constexpr std::int64_t carry_leaves = std::int64_t{1} << 20;  // far fewer than the words hold

}  // namespace

void add_squares(std::int64_t count, const float* x, ExactWords sum) {
  std::int64_t i = 0, leaves = 0;
  for (; i + 8 <= count; i += 8) {
    add_exact(sum, leaf_sum(x + i));
    if (++leaves % carry_leaves == 0) carry_exact(sum);
  }
  if (i < count) add_exact(sum, last_leaf_of_squares(x + i, count - i));
  carry_exact(sum);
}

}  // namespace foreshard::kernels::cpu
