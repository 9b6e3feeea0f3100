#include "kernels/powers.hpp"

#include <algorithm>

#include "kernels/reference/kernels.hpp"

namespace foreshard::kernels::reference {
namespace {

template <int power, class T>
void add_leaves(std::int64_t count, const T* x, ExactWords sum) {
  for (std::int64_t i = 0; i < count; i += 8) {
    add_exact(sum, count - i < 8 ? last_leaf_of_powers<power>(x + i, count - i) : leaf_of_powers<power>(x + i));
    carry_exact(sum);
  }
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
    for (std::int64_t i = 0; i < count; ++i)
      largest = std::max(largest, magnitude_bits(static_cast<double>(as<T>(x)[i])));
  });
}

}  // namespace foreshard::kernels::reference
