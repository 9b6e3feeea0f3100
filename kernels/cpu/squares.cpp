#include "kernels/cpu/kernels.hpp"
#include "kernels/exact_sum.hpp"

namespace foreshard::kernels::cpu {
namespace {

constexpr std::int64_t carry_leaves = std::int64_t{1} << 20;  // far fewer than the words hold

}  // namespace

void add_squares(std::int64_t count, const float* x, ExactWords sum) {
  std::int64_t i = 0, leaves = 0;
  for (; i + 8 <= count; i += 8) {
    add_exact(sum, leaf_of_squares(x + i));
    if (++leaves % carry_leaves == 0) carry_exact(sum);
  }
  if (i < count) add_exact(sum, last_leaf_of_squares(x + i, count - i));
  carry_exact(sum);
}

}  // namespace foreshard::kernels::cpu
