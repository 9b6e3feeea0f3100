#include "kernels/exact_sum.hpp"
#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <class T>
void add_leaves(std::int64_t count, const T* x, ExactWords sum) {
  for (std::int64_t i = 0; i < count; i += 8) {
    add_exact(sum, count - i < 8 ? last_leaf_of_squares(x + i, count - i) : leaf_of_squares(x + i));
    carry_exact(sum);
  }
}

}  // namespace

void add_squares(std::int64_t count, Const x, ExactWords sum) {
  by_number(x.dtype, [&]<class T>(T) { add_leaves(count, as<T>(x), sum); });
}

}  // namespace foreshard::kernels::reference
